import { openTestDatabase } from '../database/postgres/testing.fixture.ts';
import { topicsSuite } from './topics.suite.ts';

topicsSuite('PostgreSQL', openTestDatabase);
