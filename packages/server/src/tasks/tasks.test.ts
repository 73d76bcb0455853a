import { openTestSqlite } from '../database/sqlite/testing.fixture.ts';
import { oldVersionsSuite } from './old-versions.suite.ts';
import { streamsSuite } from './streams/streams.suite.ts';
import { taskNodesSuite } from './task-nodes.suite.ts';
import { tasksSuite } from './tasks.suite.ts';
import { wiringSuite } from './wiring.suite.ts';

tasksSuite('SQLite', openTestSqlite);
taskNodesSuite('SQLite', openTestSqlite);
streamsSuite('SQLite', openTestSqlite);
wiringSuite('SQLite', openTestSqlite);
oldVersionsSuite('SQLite', openTestSqlite);
