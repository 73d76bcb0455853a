import type { HeldRange, RangeMove } from '../consumers/ranges.ts';
import type { EventLog, EventRecord, PartitionBounds } from '../events/events.ts';

/** How much is taken at a time; passed by at most one read. */
export interface RangeLimits {
  readonly bytes: number;
  readonly records: number;
}

export interface RangePart {
  readonly records: readonly EventRecord[];
  readonly bytes: number;
}

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
    const read = await this.#log.read(address, after, { ...readLimits, records });
    // Nothing there means that what was there is gone: there is nothing to wait for.
    const through = read.at(-1)?.offset ?? last;
    this.#through.set(address.partition, { address, through });
    if (through >= last) this.#left.shift();
    let bytes = 0;
    for (const record of read) bytes += record.body.length;
    this.#records += read.length;
    this.#bytes += bytes;
    return { records: read, bytes };
  }
}
