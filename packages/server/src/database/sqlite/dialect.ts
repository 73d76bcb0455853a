import {
  type Dialect,
  type Driver,
  type Kysely,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely';
import type { Schema } from '../schema.ts';
import { SqliteConnection, type SqliteThreads } from './connection.ts';

/** The Kysely dialect over two threads: one connection that writes and one that reads. */
export function sqliteDialect(threads: SqliteThreads): Dialect {
  return {
    createDriver: () => new SqliteDriver(threads),
    createAdapter: () => new ConcurrentSqliteAdapter(),
    createQueryCompiler: () => new SqliteQueryCompiler(),
    createIntrospector: (query: Kysely<Schema>) => new SqliteIntrospector(query),
  };
}

/** Kysely would otherwise let one query in at a time, reads behind transactions included. */
class ConcurrentSqliteAdapter extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true;
  }

  override get supportsTransactionalDdl(): boolean {
    return true;
  }
}

class SqliteDriver implements Driver {
  readonly #threads: SqliteThreads;

  constructor(threads: SqliteThreads) {
    this.#threads = threads;
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<SqliteConnection> {
    return new SqliteConnection(this.#threads);
  }

  async beginTransaction(connection: SqliteConnection): Promise<void> {
    await connection.begin();
  }

  async commitTransaction(connection: SqliteConnection): Promise<void> {
    await connection.commit();
  }

  async rollbackTransaction(connection: SqliteConnection): Promise<void> {
    await connection.rollback();
  }

  async releaseConnection(): Promise<void> {}

  async destroy(): Promise<void> {}
}
