import { openTestSqlite } from '../database/sqlite/testing.fixture.ts';
import { queriesSuite } from './queries.suite.ts';

queriesSuite('SQLite', openTestSqlite);
