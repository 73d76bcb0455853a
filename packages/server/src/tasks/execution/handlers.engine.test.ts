import { it } from 'node:test';
import { handlersSuite } from './handlers.suite.ts';

if (process.env.MILLRACE_TEST_BUBBLEWRAP === undefined) {
  it('handlers in bubblewrap', { skip: 'there is no bubblewrap' });
} else {
  handlersSuite('in bubblewrap', { sandbox: 'bubblewrap', network: 'none' });
}
