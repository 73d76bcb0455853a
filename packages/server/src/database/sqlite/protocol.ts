import type { Parameter } from '../parameters.ts';

/**
 * What passes between the main thread and a thread that holds a connection. Requests travel in batches;
 * each batch is answered by one batch of replies in the same order.
 *
 * - `read`: a query that changes nothing.
 * - `write`: a change on its own. Neighbouring writes of a batch share one commit, and each is answered
 *   only after it.
 * - `alone`: any other statement outside a transaction, which may not be one that can share a commit.
 * - `begin`, `inside`, `commit`, `rollback`: a transaction, of which there is one at a time.
 */
export type Request = StatementRequest | { readonly kind: 'begin' | 'commit' | 'rollback' };

export interface StatementRequest {
  readonly kind: 'read' | 'write' | 'alone' | 'inside';
  readonly sql: string;
  readonly parameters: readonly Parameter[];
}

/**
 * `Row` is unknown where rows are read. Where they arrive it is `never`, which fits whatever type the
 * query builder gives to its rows.
 */
export interface Answer<Row = unknown> {
  readonly rows: Row[];
  readonly changes: number | bigint;
  readonly insertId: number | bigint;
}

export interface Failure {
  readonly message: string;
  /** SQLite's extended result code, or 0 for a fault that is not SQLite's. */
  readonly code: number;
  /** The disk failed under a change, so nothing may be acknowledged from here on. */
  readonly fatal: boolean;
}

export type Reply<Row = unknown> = { readonly answer: Answer<Row> } | { readonly failure: Failure };

export type FromThread<Row = unknown> =
  | { readonly kind: 'opened' }
  | { readonly kind: 'refused'; readonly message: string }
  | { readonly kind: 'replies'; readonly replies: readonly Reply<Row>[] };

export type ToThread =
  | ({ readonly kind: 'open' } & EngineOptions)
  | { readonly kind: 'requests'; readonly requests: readonly Request[] }
  | { readonly kind: 'close' };

export interface EngineOptions {
  readonly path: string;
  readonly mode: 'read' | 'write';
}
