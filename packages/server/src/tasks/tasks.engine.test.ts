import { openTestDatabase } from '../database/postgres/testing.fixture.ts';
import { oldVersionsSuite } from './old-versions.suite.ts';
import { streamsSuite } from './streams/streams.suite.ts';
import { taskNodesSuite } from './task-nodes.suite.ts';
import { tasksSuite } from './tasks.suite.ts';
import { wiringSuite } from './wiring.suite.ts';

tasksSuite('PostgreSQL', openTestDatabase);
taskNodesSuite('PostgreSQL', openTestDatabase);
streamsSuite('PostgreSQL', openTestDatabase);
wiringSuite('PostgreSQL', openTestDatabase);
oldVersionsSuite('PostgreSQL', openTestDatabase);
