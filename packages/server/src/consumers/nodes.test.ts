import { openTestSqlite } from './consumers.fixture.ts';
import { nodesSuite } from './nodes.suite.ts';

nodesSuite('consumers on nodes that share SQLite', openTestSqlite);
