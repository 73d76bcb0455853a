import { openTestSqlite } from '../database/sqlite/testing.fixture.ts';
import { catalogSuite } from './catalog.suite.ts';

catalogSuite('SQLite', openTestSqlite);
