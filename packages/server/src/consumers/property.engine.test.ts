import { openTestDatabase } from '../database/postgres/testing.fixture.ts';
import { propertySuite } from './property.suite.ts';

propertySuite('a consumer on PostgreSQL, whatever happens', openTestDatabase, 4);
