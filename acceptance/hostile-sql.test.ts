import { hostileSqlSuite } from './harness/hostile-sql.suite.ts';

// Nothing is found on this path, so this is what every host has.
hostileSqlSuite('SQL that means harm, without a sandbox', '/nowhere');
