import { openTestDatabase } from '../database/postgres/testing.fixture.ts';
import { catalogSuite } from './catalog.suite.ts';

catalogSuite('PostgreSQL', openTestDatabase);
