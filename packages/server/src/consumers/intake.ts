import type { EventLog, EventRecord } from '../events/events.ts';
import type { Clock } from '../platform/clock.ts';
import type { Log } from '../platform/log.ts';
import type { Random } from '../platform/random.ts';
import { retryDelay } from './backoff.ts';
import { parkBehind } from './conclusion.ts';
import { type Consumer, defaultBatchBytes } from './consumer.ts';
import type { Memory } from './memory.ts';
import type { Entry, Share } from './share.ts';
import { storedKey } from './stored-record.ts';

export interface IntakeOptions {
  readonly consumer: Consumer;
  readonly events: EventLog;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly memory: Memory;
  /** Something came into the window of a share, or its cursor can move. */
  onRead(share: Share): void;
  /** There may be room for more. */
  onRest(): void;
}

const readsAtOnce = 4;
/** An entry costs more than its body. */
const entryBytes = 300;
const faultDelays = { firstMilliseconds: 100, mostMilliseconds: 5_000 };

/** Reads the log ahead for one consumer, within bounds of records and bytes. */
export class Intake {
  readonly #options: IntakeOptions;
  /** Shares of which the log may have more, those that were read least lately first. */
  readonly #ready = new Set<Share>();
  readonly #chunkRecords: number;
  readonly #chunkBytes: number;
  readonly #mostBytes: number;
  readonly #mostRecords: number;
  #bytes = 0;
  #records = 0;
  #reads = 0;
  #faults = 0;
  #faultTimer: NodeJS.Timeout | undefined;

  constructor(options: IntakeOptions) {
    const { batchSize, concurrency, batchBytes = defaultBatchBytes } = options.consumer;
    this.#options = options;
    this.#chunkRecords = Math.max(batchSize, 256);
    this.#chunkBytes = Math.max(batchBytes, 256 * 1024);
    this.#mostRecords = Math.max(2 * batchSize * concurrency, 8 * this.#chunkRecords);
    this.#mostBytes = Math.max(2 * batchBytes, 8 * 1024 * 1024);
  }

  /** The log may have more of a share. */
  notice(share: Share): void {
    share.behind = true;
    this.#ready.add(share);
  }

  forget(share: Share): void {
    this.#ready.delete(share);
  }

  /** Entries were settled or dropped. */
  giveBack(records: number, bytes: number): void {
    this.#records -= records;
    this.#bytes -= bytes;
    this.#options.memory.take(-bytes);
  }

  /** Starts as many reads as there is room for. */
  fill(): void {
    if (this.#faultTimer !== undefined) return;
    for (const share of this.#ready) {
      if (this.#reads >= readsAtOnce || !this.#hasRoom()) return;
      if (share.state !== 'held') this.#ready.delete(share);
      else if (!share.reading && this.#shareHasRoom(share)) void this.#read(share);
    }
  }

  close(): void {
    clearTimeout(this.#faultTimer);
    this.#ready.clear();
  }

  #hasRoom(): boolean {
    // A consumer that has nothing in hand may always read a little, however much the others hold.
    if (this.#records === 0 && this.#reads === 0) return true;
    return (
      this.#records < this.#mostRecords && this.#bytes < this.#mostBytes && this.#options.memory.hasRoom()
    );
  }

  /**
   * A share whose keys are all in calls leaves room for others. One whose first record is not settled for
   * long stops after a while, and so does one that only parks.
   */
  #shareHasRoom(share: Share): boolean {
    const most = 8 * this.#chunkRecords;
    return share.unsettled < this.#chunkRecords && share.windowSize < most && share.changes.puts.size < most;
  }

  async #read(share: Share): Promise<void> {
    const { events, memory, log, consumer, random } = this.#options;
    const reserved = this.#chunkBytes;
    share.reading = true;
    share.behind = false;
    this.#ready.delete(share);
    this.#reads += 1;
    this.#bytes += reserved;
    memory.take(reserved);
    try {
      const limits = { records: this.#chunkRecords, bytes: this.#chunkBytes };
      const records = await events.read(share.address, share.readThrough, limits);
      this.#faults = 0;
      if (share.state !== 'held') return;
      const bytes = this.#receive(share, records);
      if (records.length >= limits.records || bytes >= limits.bytes) share.behind = true;
      if (share.behind) this.#ready.add(share);
    } catch (error) {
      this.notice(share);
      this.#faults += 1;
      const wait = retryDelay(faultDelays, this.#faults, random);
      log.warn(
        { event: 'consumers.read-failed', consumer: consumer.id, share: share.id, error },
        'read failed',
      );
      this.#faultTimer ??= setTimeout(() => {
        this.#faultTimer = undefined;
        this.#options.onRest();
      }, wait);
      this.#faultTimer.unref();
    } finally {
      share.reading = false;
      this.#reads -= 1;
      this.#bytes -= reserved;
      memory.take(-reserved);
      this.#options.onRead(share);
    }
  }

  /** Puts records into the window and answers how many bytes of bodies they have. */
  #receive(share: Share, records: readonly EventRecord[]): number {
    const { consumer, clock, memory } = this.#options;
    let bodies = 0;
    for (const record of records) {
      const selected = consumer.selects(record) && !share.parkedAhead.delete(record.offset);
      bodies += record.body.byteLength;
      share.readThrough = record.offset;
      if (!selected) continue;
      const entry = entryOf(share, record);
      if (share.parked.has(entry.key)) {
        parkBehind(entry, { clock });
        continue;
      }
      share.append(entry);
      this.#records += 1;
      this.#bytes += entry.bytes;
      memory.take(entry.bytes);
    }
    return bodies;
  }
}

function entryOf(share: Share, record: EventRecord): Entry {
  return {
    share,
    offset: record.offset,
    key: storedKey(record.key),
    bytes: record.body.byteLength + entryBytes,
    acceptedAt: record.acceptedAt,
    attempts: 0,
    parked: false,
    delivery: { address: share.address, record, attempt: 1 },
    state: 'waiting',
  };
}
