import type { Database } from '../database/database.ts';
import type { EventRecord } from '../events/events.ts';
import {
  deleteDeadLetters,
  listDeadLetterSizes,
  markRedriven,
  readDeadLetters,
} from './dead-letter-store.ts';
import { restoreRecord } from './stored-record.ts';

export interface DeadLetter {
  readonly id: string;
  readonly topicName: string;
  readonly partition: number;
  readonly record: EventRecord;
  readonly attempts: number;
  readonly error: string;
  readonly failedAt: number;
}

export interface DeadLetterPage {
  readonly letters: readonly DeadLetter[];
  /** The id after which the next page begins; undefined at the end. */
  readonly next: string | undefined;
}

/** Bytes of bodies on a page, passed by at most one letter. */
const pageBytes = 4 * 1024 * 1024;
const idsAtOnce = 500;

/** What the consumers could not handle, and what can be done about it. */
export class DeadLetters {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** A page, the oldest failure first. It ends early when the bodies are large. */
  async list(
    organizationId: string,
    consumerId: string,
    after: string | undefined,
    limit: number,
  ): Promise<DeadLetterPage> {
    const { query } = this.#database;
    const sizes = await listDeadLetterSizes(query, organizationId, consumerId, after ?? '', limit + 1);
    const ids: string[] = [];
    let room = pageBytes;
    for (const { id, bytes } of sizes) {
      if (ids.length === limit || room <= 0) break;
      ids.push(id);
      room -= bytes;
    }
    if (ids.length === 0) return { letters: [], next: undefined };
    const rows = await readDeadLetters(query, consumerId, ids);
    const letters = rows.map((row) => ({
      id: row.id,
      topicName: row.topic_name,
      partition: row.partition,
      record: restoreRecord(row.record_offset, row.record),
      attempts: row.attempts,
      error: row.error,
      failedAt: row.failed_at,
    }));
    return { letters, next: ids.length < sizes.length ? ids.at(-1) : undefined };
  }

  /**
   * Has some dead letters, or all, handled again by this consumer alone, with all attempts before them.
   * Answers how many. They come in the order of the log, but after what was handled since they failed.
   */
  async redrive(organizationId: string, consumerId: string, ids?: readonly string[]): Promise<number> {
    const { query } = this.#database;
    let count = 0;
    if (ids === undefined) count = await markRedriven(query, organizationId, consumerId, undefined);
    else {
      for (let start = 0; start < ids.length; start += idsAtOnce) {
        count += await markRedriven(query, organizationId, consumerId, ids.slice(start, start + idsAtOnce));
      }
    }
    if (count > 0) await this.#database.announce('consumers.redriven', consumerId);
    return count;
  }

  /** Deletes all dead letters of a consumer and answers how many. */
  purge(organizationId: string, consumerId: string): Promise<number> {
    return deleteDeadLetters(this.#database.query, organizationId, consumerId);
  }
}
