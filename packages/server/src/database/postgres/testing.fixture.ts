import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { systemClock } from '../../platform/clock.ts';
import type { Site } from '../database.suite.ts';
import type { Database } from '../database.ts';
import { migrations } from '../migrations/index.ts';
import type { Migration } from '../migrations/migration.ts';
import { openPostgresDatabase } from './postgres-database.ts';

/** The server that `npm run test:engines` starts. */
export const serverUrl = process.env.MILLRACE_TEST_POSTGRES_URL;

export interface PostgresSite extends Site {
  readonly url: string;
}

/** A database of its own on the server. */
export async function createPostgresSite(server: string): Promise<PostgresSite> {
  const name = `millrace_test_${randomUUID().replaceAll('-', '')}`;
  const url = new URL(server);
  url.pathname = name;
  await administer(server, `create database ${name}`);
  const opened: Database[] = [];
  return {
    url: url.href,
    open: async (wanted: readonly Migration[] = migrations) => {
      const database = await openPostgresDatabase({ url: url.href, clock: systemClock, migrations: wanted });
      opened.push(database);
      return database;
    },
    remove: async () => {
      await Promise.all(opened.map((database) => database.close()));
      await administer(server, `drop database ${name} with (force)`);
    },
  };
}

/** One open database on a site of its own, for the tests of what is built on the database. */
export async function openTestDatabase(): Promise<{ database: Database; close(): Promise<void> }> {
  if (serverUrl === undefined) throw new Error('MILLRACE_TEST_POSTGRES_URL is not set');
  const site = await createPostgresSite(serverUrl);
  return { database: await site.open(), close: site.remove };
}

/** Runs one statement on a connection of its own. */
export async function administer(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
