import { openTestSqlite } from '../database/sqlite/testing.fixture.ts';
import { stateSuite } from './state.suite.ts';

stateSuite('SQLite', openTestSqlite);
