import type { Database } from '../database/database.ts';
import type { EventLog, EventRecord } from '../events/events.ts';
import type { Log } from '../platform/log.ts';
import { type Consumer, defaultBatchBytes } from './consumer.ts';
import { DueQueue } from './due-queue.ts';
import { listParkedOfKey, type ParkedRow } from './parked-store.ts';
import type { Entry, Share } from './share.ts';
import { restoreRecord } from './stored-record.ts';

interface KeyOfShare {
  readonly share: Share;
  readonly key: string;
}

const rowsAtOnce = 100;
const recordsAtOnce = 64;

/** The parked keys of one consumer by when they are due, and how their records are got. */
export class Retries {
  readonly #consumer: Consumer;
  readonly #database: Database;
  readonly #events: EventLog;
  readonly #log: Log;
  readonly #due = new DueQueue<KeyOfShare>();

  constructor(options: { consumer: Consumer; database: Database; events: EventLog; log: Log }) {
    this.#consumer = options.consumer;
    this.#database = options.database;
    this.#events = options.events;
    this.#log = options.log;
  }

  /** When the next key is due. */
  get earliest(): number | undefined {
    return this.#due.earliest;
  }

  /**
   * Notes when a key is due; an earlier note of it no longer counts. One of which something is not written
   * yet is noted when it is.
   */
  schedule(share: Share, key: string): void {
    const known = share.parked.get(key);
    if (known === undefined || known.trying || share.isUnwritten(key)) return;
    this.#due.add(known.dueAt, { share, key });
  }

  /** A key that is due now, and that no call has at this moment. */
  take(now: number): KeyOfShare | undefined {
    for (;;) {
      const next = this.#due.take(now);
      if (next === undefined) return undefined;
      const { share, key } = next.thing;
      const known = share.parked.get(key);
      if (share.state !== 'held' || known === undefined || known.trying || known.dueAt !== next.at) continue;
      if (share.isUnwritten(key)) continue;
      if (share.isBusy(key) || share.owner !== undefined) {
        known.dueAt = now + 10;
        this.#due.add(known.dueAt, next.thing);
        continue;
      }
      known.trying = true;
      return next.thing;
    }
  }

  /**
   * The records of a key to try now. One that failed before is tried alone; those that only waited behind
   * it come together, as many as a batch holds. `missing` are records that are nowhere any more.
   */
  async load({ share, key }: KeyOfShare): Promise<{ entries: Entry[]; missing: number[] }> {
    const limit = Math.min(this.#consumer.batchSize, rowsAtOnce);
    const parked = await listParkedOfKey(this.#database.query, this.#consumer.id, share.address, key, limit);
    // Past the cursor a record would come again after a crash, and be committed a second time.
    const rows =
      this.#consumer.commit === undefined ? parked : parked.filter((row) => row.offset <= share.committed);
    const failedBefore = rows.findIndex((row) => row.attempts > 0);
    const run = failedBefore === 0 ? rows.slice(0, 1) : failedBefore > 0 ? rows.slice(0, failedBefore) : rows;
    const records = await this.#read(share, run);
    const entries: Entry[] = [];
    const missing: number[] = [];
    let room = this.#consumer.batchBytes ?? defaultBatchBytes;
    for (const row of run) {
      if (room <= 0) break;
      const record =
        row.stored === undefined ? records.get(row.offset) : restoreRecord(row.offset, row.stored);
      if (record === undefined) {
        // Also one that was not read because the bytes were used up: nothing may come before it.
        missing.push(row.offset);
        break;
      }
      room -= record.body.byteLength;
      entries.push(entryOf(share, key, record, row.attempts));
    }
    if (entries.length > 0) return { entries, missing: [] };
    return { entries, missing: await this.#confirmMissing({ share, key }, missing) };
  }

  clear(): void {
    this.#due.clear();
  }

  async #read(share: Share, rows: readonly ParkedRow[]): Promise<Map<number, EventRecord>> {
    const found = new Map<number, EventRecord>();
    let room = this.#consumer.batchBytes ?? defaultBatchBytes;
    let through = 0;
    for (const row of rows) {
      if (row.stored !== undefined || row.offset <= through) continue;
      if (room <= 0) break;
      const chunk = await this.#events.read(share.address, row.offset - 1, {
        records: Math.min(recordsAtOnce, rows.length),
        bytes: room,
      });
      for (const record of chunk) {
        found.set(record.offset, record);
        room -= record.body.byteLength;
      }
      through = chunk.at(-1)?.offset ?? Number.MAX_SAFE_INTEGER;
    }
    return found;
  }

  /** The log was trimmed and the record kept with its row, perhaps only after the row was read. */
  async #confirmMissing({ share, key }: KeyOfShare, offsets: readonly number[]): Promise<number[]> {
    const [first] = offsets;
    if (first === undefined) return [];
    const rows = await listParkedOfKey(this.#database.query, this.#consumer.id, share.address, key, 1);
    if (rows[0]?.offset !== first || rows[0].stored !== undefined) return [];
    this.#log.error(
      { event: 'consumers.record-missing', consumer: this.#consumer.id, share: share.id, offset: first },
      'a parked record is no longer in the log',
    );
    return [first];
  }
}

function entryOf(share: Share, key: string, record: EventRecord, attempts: number): Entry {
  return {
    share,
    offset: record.offset,
    key,
    bytes: record.body.byteLength,
    acceptedAt: record.acceptedAt,
    attempts,
    parked: true,
    delivery: { address: share.address, record, attempt: attempts + 1 },
    state: 'out',
  };
}
