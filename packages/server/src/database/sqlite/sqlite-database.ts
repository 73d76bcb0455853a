import { Kysely } from 'kysely';
import type { Clock } from '../../platform/clock.ts';
import { Announcements, checkAnnouncement } from '../announcements.ts';
import type { Database } from '../database.ts';
import { migrate } from '../migrate.ts';
import { migrations } from '../migrations/index.ts';
import type { Migration } from '../migrations/migration.ts';
import type { Schema } from '../schema.ts';
import { sqliteDialect } from './dialect.ts';
import { SqliteThread } from './thread.ts';
import { WriteQueue } from './write-queue.ts';

export interface SqliteDatabaseOptions {
  /** The file, which is made when it is missing. Its directory must exist. */
  readonly path: string;
  readonly clock: Clock;
  /** The disk failed under a change: the process must end without acknowledging anything more. */
  onFatal(error: Error): void;
  readonly migrations?: readonly Migration[];
  readonly queueLimit?: number;
  readonly waitMilliseconds?: number;
  readonly transactionMilliseconds?: number;
}

/** Opens an SQLite file in threads of its own and brings it to the last migration. */
export async function openSqliteDatabase(options: SqliteDatabaseOptions): Promise<Database> {
  const {
    path,
    clock,
    queueLimit = 10_000,
    waitMilliseconds = 10_000,
    transactionMilliseconds = 30_000,
  } = options;
  let fatal = false;
  const onFatal = (error: Error) => {
    if (!fatal) options.onFatal(error);
    fatal = true;
  };
  // The file is made by the connection that writes; one that only reads cannot.
  const opening = SqliteThread.open({ path, mode: 'write', queueLimit, onFatal });
  const [writing, reading] = await Promise.allSettled([
    opening,
    SqliteThread.open({ path, mode: 'read', queueLimit, onFatal, after: opening }),
  ]);
  if (writing.status === 'rejected') throw writing.reason;
  if (reading.status === 'rejected') {
    await writing.value.close();
    throw reading.reason;
  }
  const writer = writing.value;
  const reader = reading.value;
  const writes = new WriteQueue({ limit: queueLimit, waitMilliseconds });
  const query = new Kysely<Schema>({
    dialect: sqliteDialect({ writer, reader, writes, transactionMilliseconds }),
  });
  const announcements = new Announcements();
  const close = async () => {
    await writes.close();
    await Promise.all([reader.close(), writer.close()]);
  };
  try {
    // The queue of writes lets one transaction in at a time, and the data directory one process.
    const lock = async () => {};
    // A migration of much data takes as long as it takes.
    const unhurried = new Kysely<Schema>({ dialect: sqliteDialect({ writer, reader, writes }) });
    await migrate({
      engine: 'sqlite',
      query: unhurried,
      migrations: options.migrations ?? migrations,
      clock,
      lock,
    });
  } catch (error) {
    await close();
    throw error;
  }
  return {
    engine: 'sqlite',
    query,
    transaction: (work) => query.transaction().execute(work),
    announce: async (channel, payload) => {
      checkAnnouncement(channel, payload);
      announcements.deliver(channel, payload);
    },
    listen: (channel, hear, missed) => announcements.listen(channel, hear, missed),
    trustMilliseconds: Number.POSITIVE_INFINITY,
    check: async () => {
      await reader.send({ kind: 'read', sql: 'select 1', parameters: [] });
    },
    close,
  };
}
