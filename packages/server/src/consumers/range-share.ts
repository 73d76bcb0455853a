import type { PartitionAddress } from '../events/events.ts';
import { shareId } from './share-store.ts';
import type { WorkedShare } from './share-work.ts';

/** A partition of a topic that this node has for a range consumer. */
export class RangeShare implements WorkedShare {
  readonly address: PartitionAddress;
  readonly id: string;
  readonly parkedKeys = 0;
  /** The version of its row that this node wrote last. */
  version: number;
  /** The cursor in the database. */
  committed: number;
  /** `leaving`: it goes to another node when the advance under way has ended. */
  state: 'held' | 'leaving' | 'lost' = 'held';
  /** Ends with the advance that is under way, one at a time. */
  advancing: Promise<void> | undefined;
  /** Something was appended since the log was last asked for its end. */
  #noticed = true;
  #last = 0;

  constructor(address: PartitionAddress, cursor: number, version: number) {
    this.address = address;
    this.id = shareId(address);
    this.committed = cursor;
    this.version = version;
  }

  cursor(): number {
    return this.committed;
  }

  oldestAcceptedAt(): undefined {}

  isIdle(): boolean {
    return !this.#noticed && this.committed >= this.#last;
  }

  notice(): void {
    this.#noticed = true;
  }

  /** The log ends here. Should a notice be missed by this, the next time the log is asked mends it. */
  compare(last: number): void {
    this.#noticed = false;
    this.#last = last;
  }
}
