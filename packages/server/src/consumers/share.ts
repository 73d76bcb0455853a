import type { PartitionAddress } from '../events/events.ts';
import type { Delivery } from './consumer.ts';
import type { NewDeadLetter } from './dead-letter-store.ts';
import { ParkedKeys } from './parked-keys.ts';
import type { ParkedRecord } from './parked-store.ts';
import { shareId } from './share-store.ts';
import type { WorkedShare } from './share-work.ts';

/** A record on its way through this node. */
export interface Entry {
  readonly share: Share;
  readonly offset: number;
  /** As it is stored. */
  readonly key: string;
  readonly bytes: number;
  readonly acceptedAt: number;
  /** Attempts before this one. */
  readonly attempts: number;
  /** Whether it comes from the parked records, and not from the window. */
  readonly parked: boolean;
  /** Let go of once the entry is settled, because settled entries may stay in the window for a while. */
  delivery: Delivery | undefined;
  state: 'waiting' | 'out' | 'settled';
}

/** What is to be written together with the cursor. */
export interface ShareChanges {
  readonly puts: Map<number, ParkedRecord>;
  readonly deletes: Set<number>;
  readonly letters: NewDeadLetter[];
  /** Parked keys of which a record was tried. Their rows say nothing true until this is written. */
  readonly tried: Set<string>;
}

/**
 * A partition of a topic that this node works on for a consumer, in memory: the window of records that
 * were read and not all settled, the keys in calls, the keys that are parked, and what must be written.
 *
 * ```
 *            cursor            first unsettled        readThrough
 *  ── passed ──┼─ settled, unwritten ─┼─ waiting, out, settled ─┼── not read yet ──>
 * ```
 */
export class Share implements WorkedShare {
  readonly address: PartitionAddress;
  readonly id: string;
  readonly parked = new ParkedKeys();
  /** Records past the cursor that a holder before has parked; they are passed over. */
  readonly parkedAhead = new Set<number>();
  /** The version of its row that this node wrote last. */
  version: number;
  /** The cursor in the database. */
  committed: number;
  readThrough: number;
  /** `leaving`: nothing is handed out any more; it goes to another node when what is out has ended. */
  state: 'held' | 'leaving' | 'lost' = 'held';
  /** Calls that have records of it. */
  out = 0;
  /** The call that has it for itself, when its consumer commits in its transaction. */
  owner: object | undefined;
  /** Records that wait in the window. */
  waiting = 0;
  /** How many records in the window are not settled, and their bytes. */
  unsettled = 0;
  bytes = 0;
  reading = false;
  /** The log may have more than was read. */
  behind = true;
  changes: ShareChanges = noChanges();

  #writing: ShareChanges | undefined;
  #window: Entry[] = [];
  #first = 0;
  #next = 0;
  readonly #busy = new Map<string, object>();

  constructor(address: PartitionAddress, cursor: number, version: number) {
    this.address = address;
    this.id = shareId(address);
    this.committed = cursor;
    this.readThrough = cursor;
    this.version = version;
  }

  /** Entries in the window, settled ones included. */
  get windowSize(): number {
    return this.#window.length - this.#first;
  }

  get parkedKeys(): number {
    return this.parked.size;
  }

  isIdle(): boolean {
    return !this.behind && this.cursor() >= this.readThrough;
  }

  append(entry: Entry): void {
    this.#window.push(entry);
    this.waiting += 1;
    this.unsettled += 1;
    this.bytes += entry.bytes;
  }

  /** Hands out waiting records to a call, in order, but none whose key is in another call. */
  take(call: object, into: Entry[], records: number, bytes: number): number {
    let taken = 0;
    let left = records;
    let index = this.#next;
    let firstLeft = -1;
    for (; index < this.#window.length && left > 0 && taken < bytes; index += 1) {
      const entry = this.#window[index];
      if (entry === undefined || entry.state !== 'waiting') continue;
      const busy = this.#busy.get(entry.key);
      if (busy !== undefined && busy !== call) {
        if (firstLeft < 0) firstLeft = index;
        continue;
      }
      if (busy === undefined) this.#busy.set(entry.key, call);
      entry.state = 'out';
      into.push(entry);
      taken += entry.bytes;
      left -= 1;
    }
    this.#next = firstLeft < 0 ? index : firstLeft;
    this.waiting -= records - left;
    return taken;
  }

  isBusy(key: string): boolean {
    return this.#busy.has(key);
  }

  occupy(key: string, call: object): void {
    this.#busy.set(key, call);
  }

  free(key: string, call: object): void {
    if (this.#busy.get(key) === call) this.#busy.delete(key);
  }

  /** The outcome of an entry is known and in `changes` where there is something to write. */
  settle(entry: Entry): void {
    if (entry.state === 'settled') return;
    if (entry.state === 'waiting') this.waiting -= 1;
    entry.state = 'settled';
    entry.delivery = undefined;
    if (entry.parked) return;
    this.unsettled -= 1;
    this.bytes -= entry.bytes;
  }

  /** An entry whose call did not count waits again. */
  giveBack(entry: Entry): void {
    if (entry.parked || entry.state !== 'out') return;
    entry.state = 'waiting';
    this.waiting += 1;
    this.#next = this.#first;
  }

  /** The waiting records of a key, which are to be parked behind one that was parked. */
  waitingOf(key: string): Entry[] {
    const found: Entry[] = [];
    for (let index = this.#next; index < this.#window.length; index += 1) {
      const entry = this.#window[index];
      if (entry?.state === 'waiting' && entry.key === key) found.push(entry);
    }
    return found;
  }

  /** How far everything is settled; forgets what lies before. */
  cursor(): number {
    while (this.#first < this.#window.length && this.#window[this.#first]?.state === 'settled') {
      this.#first += 1;
    }
    if (this.#first > 512 && this.#first * 2 > this.#window.length) {
      this.#window.splice(0, this.#first);
      this.#next = Math.max(0, this.#next - this.#first);
      this.#first = 0;
    }
    const unsettled = this.#window[this.#first];
    return unsettled === undefined ? this.readThrough : unsettled.offset - 1;
  }

  /** When the oldest record that is not settled was accepted, if it was read. */
  oldestAcceptedAt(): number | undefined {
    this.cursor();
    return this.#window[this.#first]?.acceptedAt;
  }

  /** Whether there is something to write. */
  hasChanges(): boolean {
    const { puts, deletes, letters } = this.changes;
    return puts.size > 0 || deletes.size > 0 || letters.length > 0;
  }

  /** Parks a record, or changes what is known of a parked one. */
  put(record: ParkedRecord): void {
    this.changes.deletes.delete(record.offset);
    this.changes.puts.set(record.offset, record);
    if (record.attempts > 0) this.changes.tried.add(record.key);
  }

  /** A record is parked no more. */
  unpark(offset: number, key: string): void {
    this.changes.puts.delete(offset);
    this.changes.deletes.add(offset);
    this.changes.tried.add(key);
  }

  /** Whether what became of the records of a key that were tried last is not written yet. */
  isUnwritten(key: string): boolean {
    return this.changes.tried.has(key) || this.#writing?.tried.has(key) === true;
  }

  /** Takes what is to be written now. */
  takeChanges(): ShareChanges {
    const taken = this.changes;
    this.#writing = taken;
    this.changes = noChanges();
    return taken;
  }

  /** What was taken is written. */
  wrote(): void {
    this.#writing = undefined;
  }

  /** Puts back what was not written after all; what came since then counts. */
  restoreChanges(taken: ShareChanges): void {
    for (const [offset, record] of taken.puts) {
      if (!this.changes.puts.has(offset) && !this.changes.deletes.has(offset)) this.put(record);
    }
    for (const offset of taken.deletes) {
      if (!this.changes.puts.has(offset)) this.changes.deletes.add(offset);
    }
    this.changes.letters.push(...taken.letters);
    for (const key of taken.tried) this.changes.tried.add(key);
  }

  /** Lets go of the window, because the share goes to somebody else. */
  drop(): void {
    this.#window = [];
    this.#first = 0;
    this.#next = 0;
    this.waiting = 0;
    this.unsettled = 0;
    this.bytes = 0;
  }
}

function noChanges(): ShareChanges {
  return { puts: new Map(), deletes: new Set(), letters: [], tried: new Set() };
}
