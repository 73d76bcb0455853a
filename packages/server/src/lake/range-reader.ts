import type { HeldRange, RangeMove } from '../consumers/ranges.ts';
import {
  type EventLog,
  type EventRecord,
  type PackedRecords,
  type PartitionAddress,
  type PartitionBounds,
  placesOfRecord,
  type ReadLimits,
} from '../events/events.ts';

/** How much is taken at a time; passed by at most one read. */
export interface RangeLimits {
  readonly bytes: number;
  readonly records: number;
  /** Whether each record is looked at, so that they are needed one by one. */
  readonly oneByOne?: boolean;
}

/** What was read at once: one by one, or as it lies in memory where the log can give it so. */
export type RangePart = { readonly records: readonly EventRecord[] } | { readonly packed: PackedRecords };

/** Several reads of the log make a file, so that memory holds two of them however large the file is. */
const readLimits = { records: 20_000, bytes: 4 * 1024 * 1024 };

/**
 * Reads what the shares of a topic have that is not done yet, up to where their partitions end now, as much
 * as the limits allow. The next part is read while the last one is used.
 */
export class RangeReader {
  readonly #log: EventLog;
  readonly #limits: RangeLimits;
  readonly #left: { readonly range: HeldRange; readonly last: number }[];
  readonly #through = new Map<number, RangeMove>();
  #records = 0;
  #bytes = 0;

  constructor(
    log: EventLog,
    held: readonly HeldRange[],
    bounds: readonly PartitionBounds[],
    limits: RangeLimits,
  ) {
    this.#log = log;
    this.#limits = limits;
    const lasts = new Map(bounds.map(({ partition, last }) => [partition, last]));
    this.#left = held
      .map((range) => ({ range, last: lasts.get(range.address.partition) ?? 0 }))
      .filter(({ range, last }) => last > range.cursor);
  }

  /** Whether there is anything to be read. */
  get isEmpty(): boolean {
    return this.#left.length === 0 && this.#through.size === 0;
  }

  /** Whether the limits left something over. */
  get hasMore(): boolean {
    return this.#left.length > 0;
  }

  /** How many records were read. */
  get records(): number {
    return this.#records;
  }

  /** How far the cursors go once everything read is done. */
  get moves(): RangeMove[] {
    return [...this.#through.values()];
  }

  async *parts(signal: AbortSignal): AsyncGenerator<RangePart> {
    let next = this.#read();
    // It may fail while nobody waits for it.
    next.catch(() => undefined);
    for (;;) {
      const part = await next;
      signal.throwIfAborted();
      if (part === undefined) return;
      next = this.#read();
      next.catch(() => undefined);
      yield part;
    }
  }

  async #read(): Promise<RangePart | undefined> {
    const [first] = this.#left;
    const records = Math.min(readLimits.records, this.#limits.records - this.#records);
    if (first === undefined || records <= 0 || this.#bytes >= this.#limits.bytes) return undefined;
    const { range, last } = first;
    const { address, cursor } = range;
    const after = this.#through.get(address.partition)?.through ?? cursor;
    const { part, count, reached, bytes } = await this.#readPart(address, after, { ...readLimits, records });
    // Nothing there means that what was there is gone: there is nothing to wait for.
    const through = reached ?? last;
    this.#through.set(address.partition, { address, through });
    if (through >= last) this.#left.shift();
    this.#records += count;
    this.#bytes += bytes;
    return part;
  }

  async #readPart(
    address: PartitionAddress,
    after: number,
    limits: ReadLimits,
  ): Promise<{ part: RangePart; count: number; reached: number | undefined; bytes: number }> {
    if (this.#log.readPacked === undefined || this.#limits.oneByOne === true) {
      const records = await this.#log.read(address, after, limits);
      let bytes = 0;
      for (const record of records) bytes += record.body.length;
      return { part: { records }, count: records.length, reached: records.at(-1)?.offset, bytes };
    }
    const packed = await this.#log.readPacked(address, after, limits);
    const { count, last, places } = packed;
    let bytes = 0;
    for (let place = 0; place < places.length; place += placesOfRecord)
      bytes += (places[place + 3] ?? 0) - (places[place + 2] ?? 0);
    return { part: { packed }, count, reached: last, bytes };
  }
}
