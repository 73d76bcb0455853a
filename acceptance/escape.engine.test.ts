import { it } from 'node:test';
import { escapeSuite } from './harness/escape.suite.ts';

if (process.env.MILLRACE_TEST_BUBBLEWRAP === undefined) {
  it('escapes from bubblewrap', { skip: 'there is no bubblewrap' });
} else {
  escapeSuite('in bubblewrap', { sandbox: 'bubblewrap' });
}
