import { openTestDatabase } from '../database/postgres/testing.fixture.ts';
import { streamsSuite } from './streams/streams.suite.ts';
import { taskNodesSuite } from './task-nodes.suite.ts';
import { tasksSuite } from './tasks.suite.ts';

tasksSuite('PostgreSQL', openTestDatabase);
taskNodesSuite('PostgreSQL', openTestDatabase);
streamsSuite('PostgreSQL', openTestDatabase);
