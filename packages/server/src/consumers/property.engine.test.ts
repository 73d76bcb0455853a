import { openTestDatabase } from '../database/postgres/testing.fixture.ts';
import { propertySuite } from './property.suite.ts';
import { rangePropertySuite } from './range-property.suite.ts';

propertySuite('a consumer on PostgreSQL, whatever happens', openTestDatabase, 4);
rangePropertySuite('a range consumer on PostgreSQL, whatever happens', openTestDatabase, 3);
