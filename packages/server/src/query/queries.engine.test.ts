import { openTestDatabase } from '../database/postgres/testing.fixture.ts';
import { queriesSuite } from './queries.suite.ts';

queriesSuite('PostgreSQL', openTestDatabase);
