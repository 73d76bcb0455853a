import { setTimeout as delay } from 'node:timers/promises';
import {
  type Dialect,
  type Driver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  sql,
  type Transaction,
} from 'kysely';
import pg from 'pg';
import type { Clock } from '../../platform/clock.ts';
import { Announcements, checkAnnouncement } from '../announcements.ts';
import type { Database } from '../database.ts';
import { DatabaseBusyError } from '../errors.ts';
import { migrate } from '../migrate.ts';
import { migrations } from '../migrations/index.ts';
import type { Migration } from '../migrations/migration.ts';
import type { Schema } from '../schema.ts';
import { GuardedPostgresDriver } from './driver.ts';
import { Notifications, postgresChannel } from './notifications.ts';
import { errorOf, isConflict } from './sql-states.ts';

export interface PostgresDatabaseOptions {
  readonly url: string;
  readonly clock: Clock;
  readonly migrations?: readonly Migration[];
  readonly connections?: number;
  readonly queueLimit?: number;
  readonly statementMilliseconds?: number;
  readonly closeMilliseconds?: number;
}

const attempts = 15;
const longestPauseMilliseconds = 200;
/** For making a connection, and for waiting until one of the pool is free. */
const connectMilliseconds = 10_000;
/** Any number that no other program on the same database is likely to lock. */
const migrationLock = 7_461_220_118;
const migrationLockMilliseconds = 120_000;

/** Connects to PostgreSQL and brings the database to the last migration. */
export async function openPostgresDatabase(options: PostgresDatabaseOptions): Promise<Database> {
  const { clock, connections = 10, queueLimit = 10_000 } = options;
  const { statementMilliseconds = 30_000, closeMilliseconds = 25_000 } = options;
  const settings: pg.ClientConfig = {
    connectionString: options.url,
    application_name: 'millrace',
    connectionTimeoutMillis: connectMilliseconds,
    statement_timeout: statementMilliseconds,
    idle_in_transaction_session_timeout: statementMilliseconds,
    keepAlive: true,
    types: { getTypeParser },
  };
  const pool = new pg.Pool({ ...settings, max: connections });
  const driver = new GuardedPostgresDriver({ pool, queueLimit });
  const query = new Kysely<Schema>({ dialect: postgresDialect(driver) });
  const announcements = new Announcements();
  const notifications = new Notifications({ ...settings, query_timeout: connectMilliseconds }, announcements);
  const close = async () => {
    await driver.close(closeMilliseconds);
    await notifications.close();
  };
  try {
    await migrate({ engine: 'postgres', query, migrations: options.migrations ?? migrations, clock, lock });
    await notifications.open();
  } catch (error) {
    await close();
    throw errorOf(error);
  }
  return {
    engine: 'postgres',
    query,
    transaction: (work) => transact(query, work),
    announce: async (channel, payload) => {
      checkAnnouncement(channel, payload);
      announcements.deliver(channel, payload);
      await sql`select pg_notify(${postgresChannel}, ${notifications.envelope(channel, payload)})`.execute(
        query,
      );
    },
    listen: (channel, hear, missed) => announcements.listen(channel, hear, missed),
    trustMilliseconds: 1_000,
    check: async () => {
      await sql`select 1`.execute(query);
    },
    close,
  };
}

function postgresDialect(driver: Driver): Dialect {
  return {
    createDriver: () => driver,
    createAdapter: () => new PostgresAdapter(),
    createQueryCompiler: () => new PostgresQueryCompiler(),
    createIntrospector: (query: Kysely<Schema>) => new PostgresIntrospector(query),
  };
}

/**
 * A conflict is tried again on the same connection, so that those who lose do not queue behind newcomers,
 * after a pause that grows and differs, so that they do not meet again.
 */
function transact<T>(
  query: Kysely<Schema>,
  work: (transaction: Transaction<Schema>) => Promise<T>,
): Promise<T> {
  return query.connection().execute(async (connection) => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await connection.transaction().setIsolationLevel('serializable').execute(work);
      } catch (error) {
        if (!isConflict(error)) throw error;
        if (attempt === attempts) {
          throw new DatabaseBusyError('The transaction kept conflicting with others', { cause: error });
        }
        await delay(Math.random() * Math.min(2 ** attempt, longestPauseMilliseconds));
      }
    }
  });
}

/** Released with the transaction, also when its node dies. */
async function lock(transaction: Transaction<Schema>): Promise<void> {
  await sql`set local statement_timeout = 0`.execute(transaction);
  await sql`set local lock_timeout = ${sql.lit(migrationLockMilliseconds)}`.execute(transaction);
  await sql`select pg_advisory_xact_lock(${migrationLock})`.execute(transaction);
}

/** Counts and sums come as text by default, because they might not fit a number; ours must. */
const getTypeParser: typeof pg.types.getTypeParser = (id, format) => {
  const isInteger = id === pg.types.builtins.INT8 || id === pg.types.builtins.NUMERIC;
  return isInteger && format !== 'binary' ? parseNumber : pg.types.getTypeParser(id, format);
};

function parseNumber(text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
    throw new RangeError(`The value is too large to be represented as a JavaScript number: ${text}`);
  }
  return value;
}
