import { openTestSqlite } from '../database/sqlite/testing.fixture.ts';
import { nodesSuite } from './nodes.suite.ts';
import { rangesSuite } from './ranges.suite.ts';

nodesSuite('consumers on nodes that share SQLite', openTestSqlite);
rangesSuite('range consumers on nodes that share SQLite', openTestSqlite);
