import { createPostgresSite, serverUrl } from '../database/postgres/testing.fixture.ts';
import { nodesSuite, type Site } from './nodes.suite.ts';
import { rangesSuite } from './ranges.suite.ts';

async function open(): Promise<Site> {
  if (serverUrl === undefined) throw new Error('MILLRACE_TEST_POSTGRES_URL is not set');
  const site = await createPostgresSite(serverUrl);
  return { database: await site.open(), another: () => site.open(), close: site.remove };
}

nodesSuite('consumers on nodes that share PostgreSQL', open);
rangesSuite('range consumers on nodes that share PostgreSQL', open);
