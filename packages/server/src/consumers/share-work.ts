import type { PartitionAddress } from '../events/events.ts';
import type { TakenShare } from './share-store.ts';

/** What it takes to know which shares somebody is to have. */
export interface ShareConsumer {
  readonly id: string;
  readonly organizationId: string;
  /** Where a share without a cursor begins; with the first record that is there, unless set. */
  readonly startAt?: 'beginning' | 'end';
  wants(topicName: string): boolean;
}

/** A share that this node works on. */
export interface WorkedShare {
  readonly address: PartitionAddress;
  /** Keys that are held back because a record of theirs failed. */
  readonly parkedKeys: number;
  /** Whether it is known that there is nothing to do, without asking the log. */
  isIdle(): boolean;
  /** How far everything is done. */
  cursor(): number;
  /** When the first record after the cursor was accepted, if that is known. */
  oldestAcceptedAt(): number | undefined;
}

/**
 * The work of one consumer on the shares that this node holds of it. Which shares these are is up to the
 * allotment; what is done with them is up to the kind of consumer.
 */
export interface ShareWork {
  readonly consumer: ShareConsumer;
  /** By the id of the share. */
  readonly shares: ReadonlyMap<string, WorkedShare>;
  /** Records in calls. */
  readonly inFlight: number;
  /** Whether the log keeps what it has not passed of a topic that it does not want at the moment. */
  readonly keepsUnwanted: boolean;
  /** Begins to work on shares of a topic that were taken. */
  hold(topicName: string, taken: readonly TakenShare[]): Promise<void>;
  /** The log has more of a partition. False when this node does not hold it. */
  notice(topicName: string, partition: number): boolean;
  /** The log was asked and ends here. */
  compare(address: PartitionAddress, last: number): void;
  /** Gives a share to others once what is in hand of it has ended. */
  leave(shareId: string): void;
  /** Stops at once: others may work on the shares. */
  loseAll(): void;
  /** Whether something is still in hand of a share that was lost, so that it must not be taken again. */
  hasLeftover(shareId: string): boolean;
  /** Dead letters of a partition are to be handled again. */
  redrive?(topicName: string, partition: number): void;
  /** Starts nothing more, gives what is in hand so much time, and gives up all shares. */
  close(drainMilliseconds: number): Promise<void>;
}
