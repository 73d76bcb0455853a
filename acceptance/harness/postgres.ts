import { randomUUID } from 'node:crypto';
import pg from 'pg';

/** The PostgreSQL server that the tests of engines start; undefined in the ordinary run. */
export const postgresServer: string | undefined = process.env.MILLRACE_TEST_POSTGRES_URL;

export interface TestDatabase {
  readonly url: string;
  drop(): Promise<void>;
}

/** An empty database of its own on the server. */
export async function createDatabase(server: string): Promise<TestDatabase> {
  const name = `millrace_acceptance_${randomUUID().replaceAll('-', '')}`;
  await administer(server, `create database ${name}`);
  const url = new URL(server);
  url.pathname = name;
  return { url: url.href, drop: () => administer(server, `drop database if exists ${name} with (force)`) };
}

async function administer(server: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: server });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
