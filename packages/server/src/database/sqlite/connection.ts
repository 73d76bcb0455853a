import type { CompiledQuery, DatabaseConnection, QueryResult } from 'kysely';
import { DatabaseBusyError } from '../errors.ts';
import { storable } from '../parameters.ts';
import type { Request, StatementRequest } from './protocol.ts';
import type { SqliteThread } from './thread.ts';
import type { WriteQueue } from './write-queue.ts';

export interface SqliteThreads {
  readonly writer: SqliteThread;
  /** Sees every commit that has returned, and waits for no transaction. */
  readonly reader: SqliteThread;
  readonly writes: WriteQueue;
  /** How long a transaction may keep all other writes waiting; without one, for as long as it takes. */
  readonly transactionMilliseconds?: number;
}

/**
 * What Kysely holds while it runs a query or a transaction.
 *
 * ```
 * single ──begin──> inside ──commit, rollback or time limit──> over ──begin──> inside ...
 * ```
 *
 * A query that arrives when its transaction is over is refused. Kysely lets such stragglers through, for
 * example the second of two parallel queries of which the first fails, and they would be carried out on
 * their own although their transaction was rolled back.
 */
export class SqliteConnection implements DatabaseConnection {
  readonly #threads: SqliteThreads;
  #state: 'single' | 'inside' | 'over' = 'single';
  #expired = false;
  /** A query of the transaction failed. PostgreSQL then only lets it be rolled back, and so do we. */
  #failed = false;
  #timeLimit: NodeJS.Timeout | undefined;

  constructor(threads: SqliteThreads) {
    this.#threads = threads;
  }

  async begin(): Promise<void> {
    const { writes, writer, transactionMilliseconds } = this.#threads;
    await writes.exclusive();
    this.#state = 'inside';
    this.#expired = false;
    this.#failed = false;
    if (transactionMilliseconds !== undefined) {
      this.#timeLimit = setTimeout(() => {
        this.#expired = true;
        this.rollback().catch(ignore);
      }, transactionMilliseconds);
    }
    // Travels with the first query. If it fails, the thread answers that query with the reason.
    writer.send({ kind: 'begin' }).catch(ignore);
  }

  async commit(): Promise<void> {
    if (this.#state !== 'inside') throw this.#overError();
    if (this.#failed) throw new Error('A query of the transaction failed, so it cannot be committed');
    await this.#finish({ kind: 'commit' });
  }

  async rollback(): Promise<void> {
    if (this.#state === 'inside') await this.#finish({ kind: 'rollback' });
  }

  async executeQuery(query: CompiledQuery): Promise<QueryResult<never>> {
    const { rows, changes, insertId } = await this.#execute(query);
    return { rows, numAffectedRows: BigInt(changes), insertId: BigInt(insertId) };
  }

  streamQuery(): AsyncIterableIterator<QueryResult<never>> {
    throw new Error('Queries are not streamed: read in pages');
  }

  #execute(query: CompiledQuery) {
    const { writer, reader, writes } = this.#threads;
    const statement = (kind: StatementRequest['kind']): StatementRequest => ({
      kind,
      sql: query.sql,
      parameters: storable(query.parameters),
    });
    if (this.#state === 'over') throw this.#overError();
    if (this.#state === 'inside') return this.#executeInside(statement('inside'));
    switch (query.query.kind) {
      case 'SelectQueryNode':
        return reader.send(statement('read'));
      case 'InsertQueryNode':
      case 'UpdateQueryNode':
      case 'DeleteQueryNode': {
        const write = statement('write');
        return writes.single(() => writer.send(write));
      }
      default: {
        const other = statement('alone');
        return writes.single(() => writer.send(other));
      }
    }
  }

  async #executeInside(statement: StatementRequest) {
    if (this.#failed) throw new Error('An earlier query of the transaction failed');
    try {
      return await this.#threads.writer.send(statement);
    } catch (error) {
      this.#failed = true;
      throw error;
    }
  }

  /** Ends the transaction. The next one may begin at once: the thread keeps the order. */
  #finish(request: Request): Promise<unknown> {
    clearTimeout(this.#timeLimit);
    this.#state = 'over';
    const finished = this.#threads.writer.send(request);
    this.#threads.writes.leave();
    return finished;
  }

  #overError(): Error {
    return this.#expired
      ? new DatabaseBusyError('The transaction took too long and was rolled back')
      : new Error('The transaction is over');
  }
}

function ignore(): void {}
