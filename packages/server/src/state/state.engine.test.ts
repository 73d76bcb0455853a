import { openTestDatabase } from '../database/postgres/testing.fixture.ts';
import { stateSuite } from './state.suite.ts';

stateSuite('PostgreSQL', openTestDatabase);
