/** What a kind of consumer (task, lake, store) did on this node since it started. */
export interface ConsumerCounts {
  handled: number;
  failed: number;
  deadLettered: number;
}

/** The figures of one kind of consumer on this node, ready to be shown as metrics. */
export interface KindFigures extends Readonly<ConsumerCounts> {
  readonly kind: string;
  /** How many consumers of the kind are registered here. */
  readonly consumers: number;
  /** Shares that this node holds for them. */
  readonly shares: number;
  /** Records in the shares of this node that are not passed yet. The sum over all nodes is the whole. */
  readonly lag: number;
  readonly oldestAgeMilliseconds: number;
  /** Keys that are held back because a record of theirs failed. */
  readonly parkedKeys: number;
  /** Records in calls at this moment. */
  readonly inFlight: number;
}

/** What the metrics of the service read. */
export interface ConsumerFigures {
  read(): Promise<readonly KindFigures[]>;
}

/** Counts by kind, which outlive the consumers, because what is counted must not go down. */
export class Counters {
  readonly #kinds = new Map<string, ConsumerCounts>();

  of(consumerId: string): ConsumerCounts {
    const kind = kindOf(consumerId);
    let counts = this.#kinds.get(kind);
    if (counts === undefined) {
      counts = { handled: 0, failed: 0, deadLettered: 0 };
      this.#kinds.set(kind, counts);
    }
    return counts;
  }

  *[Symbol.iterator](): Iterator<readonly [string, ConsumerCounts]> {
    yield* this.#kinds;
  }
}

export function kindOf(consumerId: string): string {
  return consumerId.split('/', 1)[0] ?? consumerId;
}
