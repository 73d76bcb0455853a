import { dirname } from 'node:path';
import { it } from 'node:test';
import { hostileSqlSuite } from './harness/hostile-sql.suite.ts';

const bubblewrap = process.env.MILLRACE_TEST_BUBBLEWRAP;

if (bubblewrap === undefined) it('hostile SQL in bubblewrap', { skip: 'there is no bubblewrap' });
else hostileSqlSuite('SQL that means harm, inside bubblewrap', dirname(bubblewrap));
