import {
  type CompiledQuery,
  type DatabaseConnection,
  type Driver,
  PostgresDriver,
  type QueryResult,
  type TransactionSettings,
} from 'kysely';
import type pg from 'pg';
import { DatabaseBusyError, DatabaseUnavailableError } from '../errors.ts';
import { storable } from '../parameters.ts';
import { errorOf } from './sql-states.ts';

export interface GuardedDriverOptions {
  readonly pool: pg.Pool;
  /** How many may wait for a connection; more are refused. */
  readonly queueLimit: number;
}

/**
 * Kysely's driver with what it lacks: a bound on who waits, errors in our terms, no crash when a
 * connection drops between two queries, no query on a transaction that is over, and a close that waits.
 */
export class GuardedPostgresDriver implements Driver {
  readonly #pool: pg.Pool;
  readonly #queueLimit: number;
  readonly #driver: Driver;
  #inUse = 0;
  #closed = false;
  #whenIdle: (() => void)[] = [];

  constructor({ pool, queueLimit }: GuardedDriverOptions) {
    this.#pool = pool;
    this.#queueLimit = queueLimit;
    this.#driver = new PostgresDriver({ pool });
    // A connection that drops is replaced by the pool, and a query on it fails and tells. The events
    // themselves, of idle connections and of those between two queries, would end the process.
    pool.on('error', ignore);
    pool.on('connect', (client) => client.on('error', ignore));
  }

  init(): Promise<void> {
    return this.#driver.init();
  }

  async acquireConnection(): Promise<GuardedConnection> {
    if (this.#closed) throw new DatabaseUnavailableError('The database is closed');
    if (this.#pool.waitingCount >= this.#queueLimit) {
      throw new DatabaseBusyError('Too many queries are waiting for the database');
    }
    this.#inUse++;
    try {
      return new GuardedConnection(await this.#driver.acquireConnection());
    } catch (error) {
      this.#leave();
      // What the pool says when every connection stayed in use, as against the server not answering.
      if (error instanceof Error && error.message === 'timeout exceeded when trying to connect') {
        throw new DatabaseBusyError('The database was busy with other queries for too long', {
          cause: error,
        });
      }
      throw errorOf(error);
    }
  }

  beginTransaction(connection: GuardedConnection, settings: TransactionSettings): Promise<void> {
    return connection.begin((inner) => this.#driver.beginTransaction(inner, settings));
  }

  commitTransaction(connection: GuardedConnection): Promise<void> {
    return connection.finish((inner) => this.#driver.commitTransaction(inner));
  }

  rollbackTransaction(connection: GuardedConnection): Promise<void> {
    return connection.finish((inner) => this.#driver.rollbackTransaction(inner));
  }

  async releaseConnection(connection: GuardedConnection): Promise<void> {
    try {
      await connection.finish((inner) => this.#driver.releaseConnection(inner));
    } finally {
      this.#leave();
    }
  }

  destroy(): Promise<void> {
    return this.close(0);
  }

  /** Refuses new work, waits at most so long for what is under way, and closes every connection. */
  async close(waitMilliseconds: number): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    const limit = AbortSignal.timeout(waitMilliseconds);
    while (this.#inUse > 0 && !limit.aborted) {
      await new Promise<void>((resolve) => {
        this.#whenIdle.push(resolve);
        limit.addEventListener('abort', () => resolve(), { once: true });
      });
    }
    // Resolves only when every connection is back, so it is not waited for when one is not.
    const ended = this.#pool.end();
    if (this.#inUse === 0) await ended;
  }

  #leave(): void {
    this.#inUse--;
    if (this.#inUse === 0) for (const resolve of this.#whenIdle.splice(0)) resolve();
  }
}

/** One use of a connection, from the pool and back. */
class GuardedConnection implements DatabaseConnection {
  readonly #inner: DatabaseConnection;
  /**
   * Set when a commit or rollback is on its way. Kysely lets a query through that was waiting behind a
   * failed one of the same transaction, and PostgreSQL would carry it out on its own after the rollback.
   */
  #over = false;
  #running: Promise<unknown> = Promise.resolve();

  constructor(inner: DatabaseConnection) {
    this.#inner = inner;
  }

  async begin(step: (inner: DatabaseConnection) => Promise<void>): Promise<void> {
    this.#over = false;
    await inOurTerms(step(this.#inner));
  }

  async finish(step: (inner: DatabaseConnection) => Promise<void>): Promise<void> {
    this.#over = true;
    // Such a query may also be under way already, and a connection takes one at a time.
    await this.#running.catch(ignore);
    await inOurTerms(step(this.#inner));
  }

  async executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    if (this.#over) throw new Error('The transaction is over');
    const running = this.#inner.executeQuery<Row>({ ...query, parameters: storable(query.parameters) });
    this.#running = running;
    return await inOurTerms(running);
  }

  streamQuery(): AsyncIterableIterator<QueryResult<never>> {
    throw new Error('Queries are not streamed: read in pages');
  }
}

async function inOurTerms<T>(promise: Promise<T>): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    throw errorOf(error);
  }
}

function ignore(): void {}
