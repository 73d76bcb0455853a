import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../platform/clock.ts';
import type { Database } from '../database.ts';
import { openSqliteDatabase } from './sqlite-database.ts';

/** A database of its own, in a file that goes when it is closed. */
export async function openTestSqlite(): Promise<{ database: Database; close(): Promise<void> }> {
  const directory = await mkdtemp(join(tmpdir(), 'millrace-database-'));
  const database = await openSqliteDatabase({
    path: join(directory, 'millrace.db'),
    clock: systemClock,
    onFatal: (error) => {
      throw error;
    },
  });
  return {
    database,
    close: async () => {
      await database.close();
      await rm(directory, { recursive: true });
    },
  };
}
