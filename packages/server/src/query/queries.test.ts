import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openSqliteDatabase } from '../database/sqlite/sqlite-database.ts';
import { systemClock } from '../platform/clock.ts';
import { queriesSuite } from './queries.suite.ts';

queriesSuite('SQLite', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'millrace-queries-'));
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
});
