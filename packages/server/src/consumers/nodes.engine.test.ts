import { createPostgresSite, serverUrl } from '../database/postgres/testing.fixture.ts';
import { nodesSuite } from './nodes.suite.ts';

nodesSuite('consumers on nodes that share PostgreSQL', async () => {
  if (serverUrl === undefined) throw new Error('MILLRACE_TEST_POSTGRES_URL is not set');
  const site = await createPostgresSite(serverUrl);
  return { database: await site.open(), another: () => site.open(), close: site.remove };
});
