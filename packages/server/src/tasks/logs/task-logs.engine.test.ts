import { openTestDatabase } from '../../database/postgres/testing.fixture.ts';
import { taskLogSuite } from './task-logs.suite.ts';

taskLogSuite('PostgreSQL', openTestDatabase);
