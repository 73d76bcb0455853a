import { openTestSqlite } from '../../consumers/consumers.fixture.ts';
import { taskLogSuite } from './task-logs.suite.ts';

taskLogSuite('SQLite', openTestSqlite);
