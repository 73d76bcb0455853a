import { openTestSqlite } from './consumers.fixture.ts';
import { propertySuite } from './property.suite.ts';

propertySuite('a consumer on SQLite, whatever happens', openTestSqlite, 6);
