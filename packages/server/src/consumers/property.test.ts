import { openTestSqlite } from '../database/sqlite/testing.fixture.ts';
import { propertySuite } from './property.suite.ts';
import { rangePropertySuite } from './range-property.suite.ts';

propertySuite('a consumer on SQLite, whatever happens', openTestSqlite, 6);
rangePropertySuite('a range consumer on SQLite, whatever happens', openTestSqlite, 4);
