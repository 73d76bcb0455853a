import type { DatabaseSync, StatementSync } from 'node:sqlite';

export interface CachedStatement {
  readonly statement: StatementSync;
  readonly returnsRows: boolean;
}

/** Prepared statements by their SQL, forgetting the one unused for longest. */
export class StatementCache {
  readonly #database: DatabaseSync;
  readonly #capacity: number;
  readonly #statements = new Map<string, CachedStatement>();

  constructor(database: DatabaseSync, capacity: number) {
    this.#database = database;
    this.#capacity = capacity;
  }

  prepare(sql: string): CachedStatement {
    const found = this.#statements.get(sql);
    if (found !== undefined) {
      this.#statements.delete(sql);
      this.#statements.set(sql, found);
      return found;
    }
    const statement = this.#database.prepare(sql);
    const cached = { statement, returnsRows: statement.columns().length > 0 };
    this.#statements.set(sql, cached);
    if (this.#statements.size > this.#capacity) {
      for (const oldest of this.#statements.keys()) {
        this.#statements.delete(oldest);
        break;
      }
    }
    return cached;
  }
}
