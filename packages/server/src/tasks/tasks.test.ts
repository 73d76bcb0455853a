import { openTestSqlite } from '../database/sqlite/testing.fixture.ts';
import { streamsSuite } from './streams/streams.suite.ts';
import { taskNodesSuite } from './task-nodes.suite.ts';
import { tasksSuite } from './tasks.suite.ts';

tasksSuite('SQLite', openTestSqlite);
taskNodesSuite('SQLite', openTestSqlite);
streamsSuite('SQLite', openTestSqlite);
