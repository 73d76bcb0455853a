import { DatabaseSync } from 'node:sqlite';
import { isInputOutputError, sqliteCodeOf } from '../../platform/sqlite-codes.ts';
import type { Parameter } from '../parameters.ts';
import type { Answer, EngineOptions, Failure, Reply, Request, StatementRequest } from './protocol.ts';
import { StatementCache } from './statement-cache.ts';

const busyTimeoutMilliseconds = 5_000;
const preparedStatements = 256;
const nothing: Answer = { rows: [], changes: 0, insertId: 0 };

/**
 * One connection to an SQLite file, used from the thread that holds it. Requests are carried out strictly
 * in the order they come. Once the disk has failed under a change, everything is refused: whether that
 * change is on the disk is unknown, and a second sync would claim it is.
 */
export class SqliteEngine {
  readonly #database: DatabaseSync;
  readonly #statements: StatementCache;
  readonly #writes: boolean;
  /** Why the transaction that the main thread believes open is not. */
  #lost: Failure | undefined;
  #dead: Failure | undefined;

  constructor({ path, mode }: EngineOptions) {
    this.#writes = mode === 'write';
    this.#database = new DatabaseSync(path, {
      readOnly: !this.#writes,
      timeout: busyTimeoutMilliseconds,
      enableForeignKeyConstraints: true,
    });
    if (this.#writes) {
      this.#database.exec('pragma journal_mode = wal; pragma synchronous = full');
      // What a process wrote and did not sync before it died is found again, perhaps in the system's memory
      // only: it goes to the disk before anything is built on it.
      this.#database.exec('pragma wal_checkpoint(truncate)');
    }
    this.#database.exec('pragma temp_store = memory');
    this.#statements = new StatementCache(this.#database, preparedStatements);
  }

  run(requests: readonly Request[]): Reply[] {
    const replies: Reply[] = [];
    let writes: StatementRequest[] = [];
    for (const request of requests) {
      if (request.kind === 'write') {
        writes.push(request);
        continue;
      }
      replies.push(...this.#runWrites(writes), this.#runOne(request));
      writes = [];
    }
    replies.push(...this.#runWrites(writes));
    return replies;
  }

  close(): void {
    this.#database.close();
  }

  #runOne(request: Request): Reply {
    if (this.#dead) return { failure: this.#dead };
    try {
      return { answer: this.#carryOut(request) };
    } catch (error) {
      return { failure: this.#failureOf(error) };
    }
  }

  #runWrites(requests: readonly StatementRequest[]): Reply[] {
    return requests.length > 1 ? this.#runGroup(requests) : requests.map((request) => this.#runOne(request));
  }

  /**
   * Commits several writes with one sync. A write that breaks a constraint is undone by SQLite alone and
   * fails alone; a fault that ends the transaction, or a failed commit, fails the whole group.
   */
  #runGroup(requests: readonly StatementRequest[]): Reply[] {
    const began = this.#runOne({ kind: 'begin' });
    if ('failure' in began) return requests.map(() => began);
    const replies: Reply[] = [];
    for (const request of requests) {
      const reply = this.#runOne({ ...request, kind: 'inside' });
      replies.push(reply);
      if (this.#lost) break;
    }
    const ended = this.#runOne({ kind: 'commit' });
    if ('answer' in ended) return replies;
    this.#runOne({ kind: 'rollback' });
    return requests.map((_, index) => {
      const reply = replies[index];
      return reply !== undefined && 'failure' in reply ? reply : ended;
    });
  }

  #carryOut(request: Request): Answer {
    switch (request.kind) {
      case 'begin':
        this.#lost = undefined;
        try {
          this.#database.exec('begin immediate');
        } catch (error) {
          this.#lost = this.#failureOf(error);
          throw error;
        }
        return nothing;
      case 'commit':
        if (!this.#database.isTransaction) throw new LostTransaction(this.#lost);
        this.#database.exec('commit');
        return nothing;
      case 'rollback':
        // Some faults, a full disk among them, have already rolled it back.
        if (this.#database.isTransaction) this.#database.exec('rollback');
        return nothing;
      case 'inside':
        if (!this.#database.isTransaction) throw new LostTransaction(this.#lost);
        try {
          return this.#execute(request.sql, request.parameters);
        } catch (error) {
          if (!this.#database.isTransaction) this.#lost = this.#failureOf(error);
          throw error;
        }
      default:
        // The main thread never sends these while a transaction is open; if it did, they would join it.
        if (this.#database.isTransaction) throw new Error('A transaction is open on this connection');
        try {
          return this.#execute(request.sql, request.parameters);
        } finally {
          if (this.#database.isTransaction) this.#database.exec('rollback');
        }
    }
  }

  #execute(sql: string, parameters: readonly Parameter[]): Answer {
    const { statement, returnsRows } = this.#statements.prepare(sql);
    const bound = parameters.map(asInteger);
    if (returnsRows) return { ...nothing, rows: statement.all(...bound) };
    const { changes, lastInsertRowid } = statement.run(...bound);
    return { rows: [], changes, insertId: lastInsertRowid };
  }

  #failureOf(error: unknown): Failure {
    if (error instanceof LostTransaction && error.failure) return error.failure;
    const message = error instanceof Error ? error.message : String(error);
    const code = sqliteCodeOf(error);
    const fatal = this.#writes && isInputOutputError(code);
    const failure = { message, code, fatal };
    if (fatal) this.#dead = failure;
    return failure;
  }
}

/** The transaction ended on its own, so what was meant to be part of it must not be carried out. */
class LostTransaction extends Error {
  readonly failure: Failure | undefined;

  constructor(failure: Failure | undefined) {
    super('The transaction is no longer open');
    this.failure = failure;
  }
}

/** JavaScript's numbers are bound as floating point, with which SQLite would divide and compare otherwise. */
function asInteger(value: Parameter): Parameter {
  return typeof value === 'number' && Number.isSafeInteger(value) ? BigInt(value) : value;
}
