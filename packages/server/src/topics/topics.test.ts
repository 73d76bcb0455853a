import { openTestSqlite } from '../database/sqlite/testing.fixture.ts';
import { topicsSuite } from './topics.suite.ts';

topicsSuite('SQLite', openTestSqlite);
