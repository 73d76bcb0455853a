import { it } from 'node:test';
import { cgroupsSuite } from './cgroups.suite.ts';

if (process.env.MILLRACE_TEST_BUBBLEWRAP === undefined) {
  it('control groups in bubblewrap', { skip: 'there is no bubblewrap' });
} else {
  cgroupsSuite('in bubblewrap', 'bubblewrap');
}
