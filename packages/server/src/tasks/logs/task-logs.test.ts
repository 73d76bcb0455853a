import { openTestSqlite } from '../../database/sqlite/testing.fixture.ts';
import { taskLogSuite } from './task-logs.suite.ts';

taskLogSuite('SQLite', openTestSqlite);
