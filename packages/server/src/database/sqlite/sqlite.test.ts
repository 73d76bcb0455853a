import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../platform/clock.ts';
import { databaseSuite } from '../database.suite.ts';
import type { Database } from '../database.ts';
import { openSqliteDatabase } from './sqlite-database.ts';

databaseSuite('the SQLite database', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'millrace-sqlite-'));
  const opened: Database[] = [];
  return {
    open: async (migrations) => {
      const database = await openSqliteDatabase({
        path: join(directory, 'millrace.db'),
        clock: systemClock,
        onFatal: (error) => {
          throw error;
        },
        ...(migrations && { migrations }),
      });
      opened.push(database);
      return database;
    },
    remove: async () => {
      await Promise.all(opened.map((database) => database.close()));
      await rm(directory, { recursive: true });
    },
  };
});
