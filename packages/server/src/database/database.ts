import type { Kysely, Transaction } from 'kysely';
import type { Schema } from './schema.ts';

/**
 * The database port: accounts, keys, topics, tasks, catalog, cursors and state.
 *
 * Two adapters stand behind it, SQLite in a worker thread and PostgreSQL, and both run the same
 * migrations and pass the same suite. Values are kept to what both store alike: text, integers that
 * fit a JavaScript number, and booleans and times as integers (0 or 1, milliseconds since the epoch).
 */
export interface Database {
  readonly engine: 'sqlite' | 'postgres';
  /** Queries outside a transaction. */
  readonly query: Kysely<Schema>;
  /**
   * Runs the work in one serializable transaction and commits when it resolves. A conflict with another
   * transaction is tried again a bounded number of times, so the work must have no effect but its queries.
   * Inside, use only the transaction that is given: a write through `query` would wait for this
   * transaction to end. Once a query in it has failed, a transaction can only be rolled back, so let the
   * error out and deal with it outside.
   */
  transaction<T>(work: (transaction: Transaction<Schema>) => Promise<T>): Promise<T>;
  /**
   * Tells every node, this one included, that something changed. On one node it arrives before the
   * returned promise resolves; on others within a second. A payload has at most 4,000 bytes.
   */
  announce(channel: string, payload: string): Promise<void>;
  /**
   * Hears announcements of a channel until the returned function is called. `missed` is called when
   * announcements of other nodes may have been lost, so that anything read before may have changed.
   */
  listen(channel: string, hear: (payload: string) => void, missed?: () => void): () => void;
  /**
   * How long a value read from here may be served from memory without being told of a change. Infinite
   * where announcements cannot be missed (one process), short where a connection may drop (several nodes).
   */
  readonly trustMilliseconds: number;
  /** Resolves when a trivial query answers, rejects when the engine is not usable. */
  check(): Promise<void>;
  /** Refuses new work, waits for what is under way, and lets go of the engine. */
  close(): Promise<void>;
}
