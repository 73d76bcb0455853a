import type { Transaction } from 'kysely';
import type { Schema } from '../database/schema.ts';
import type { PartitionAddress } from '../events/events.ts';
import type { ConsumerStatus } from './consumer.ts';

/**
 * Somebody who reads topics in ranges of its partitions, at its own pace, such as the lake writer. The
 * runner sees to it that one node at a time has a share and that its cursor moves once; reading is left to
 * the consumer. There is no parking, no dead letter and no reading ahead.
 */
export interface RangeConsumer {
  /** Unique and stable, the kind first: `lake/<organization>`. */
  readonly id: string;
  readonly organizationId: string;
  /** Which topics it reads. The answer may change; it is asked again from time to time. */
  wants(topicName: string): boolean;
  /** More was appended to a share that this node holds, or shares were taken, which may have a backlog. */
  noticed(topicName: string): void;
  /** A share of the topic goes, or went, to another node: work on the topic should end soon. */
  lost?(topicName: string): void;
}

/** A share that this node holds. */
export interface HeldRange {
  readonly address: PartitionAddress;
  /** The offset through which everything is done, as it was committed last. */
  readonly cursor: number;
}

/** How far a cursor goes: through this offset everything is done. */
export interface RangeMove {
  readonly address: PartitionAddress;
  readonly through: number;
}

/** A place in a topic. */
export interface RangeTarget {
  readonly partition: number;
  readonly offset: number;
}

/**
 * Whether an `advance` was done could not be found out. Whoever gets this must neither undo what belongs to
 * it (a file it names may be in use) nor build on it; what is in the database says how to go on.
 */
export class RangeOutcomeUnknownError extends Error {
  override readonly name = 'RangeOutcomeUnknownError';
}

/** A range consumer on this node. */
export interface RangeRegistration {
  /** The shares of a topic that this node holds now and may work on. */
  held(topicName: string): readonly HeldRange[];
  /** The topics of which this node holds shares. */
  topics(): readonly string[];
  /**
   * Moves cursors and makes the changes of `work` in one transaction. `lost` when any of the shares is not
   * ours any more, or is about to go: then nothing was changed. `work` may be run again, so it must do
   * nothing but query. Rejects when it throws, and then nothing was changed.
   *
   * When the connection breaks, it is tried again, and the versions of the shares tell whether it was done.
   * Where they cannot, because another node went on before the database could be asked, or it could not be
   * asked in time, this rejects with `RangeOutcomeUnknownError`.
   */
  advance(
    moves: readonly RangeMove[],
    work: (transaction: Transaction<Schema>) => Promise<void>,
  ): Promise<'moved' | 'lost'>;
  /**
   * Resolves true when the cursors of these partitions have reached these offsets in the database, on
   * whatever node, and false when the signal aborts.
   */
  reached(topicName: string, targets: readonly RangeTarget[], signal: AbortSignal): Promise<boolean>;
  /** Asks `wants` again now: its answer has changed. */
  refresh(): void;
  /** Ends it on this node: an `advance` under way ends within the bound of a shutdown, other nodes go on. */
  remove(): Promise<void>;
  status(): Promise<ConsumerStatus>;
}
