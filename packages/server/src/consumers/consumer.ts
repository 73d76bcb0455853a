import type { Transaction } from 'kysely';
import type { Schema } from '../database/schema.ts';
import type { EventRecord, PartitionAddress } from '../events/events.ts';

/**
 * Somebody who reads topics: a task, the lake writer or the keyed store of a topic. The runner gives it
 * records at least once, those of one key in order and never two of them in different calls at a time.
 */
export interface Consumer {
  /** Unique and stable, the kind first: `store/<organization>/<topic>`, `task/<organization>/<task>`. */
  readonly id: string;
  readonly organizationId: string;
  /** Where it begins when it is registered for the first time; what is retained of its topics, unless set. */
  readonly startAt?: 'beginning' | 'end';
  /** Which topics it reads. The answer may change; it is asked again from time to time. */
  wants(topicName: string): boolean;
  /** Which records of these topics are meant for it, by their routes. Others are passed over. */
  selects(record: EventRecord): boolean;
  /** Records a call of `handle` gets at most. */
  readonly batchSize: number;
  /** Bytes of bodies a call gets at most, passed by at most one record; 4 MiB unless set. */
  readonly batchBytes?: number;
  /** Calls of `handle` under way at most on one node. */
  readonly concurrency: number;
  /** How often a record is tried before it becomes a dead letter. */
  readonly maxAttempts: number;
  /** The delay between attempts, doubled each time, with jitter. */
  readonly retry: RetryDelays;
  /**
   * Handles a batch and answers which of it failed; throwing fails all of it. A record that failed before
   * comes alone, so that it cannot take others with it again. The signal aborts when the work was lost to
   * another node or must end; what the call answers then does not count.
   */
  handle(batch: readonly Delivery[], signal: AbortSignal): Promise<readonly Failure[]>;
  /**
   * Changes of the database that belong to the batch: made in the transaction that moves the cursors, so
   * each record is committed exactly once, although it may be handled more often. It gets what did not
   * fail of one call and may be tried again, so it must do nothing but query. Throwing fails the records.
   * A consumer that has this works on one batch of a partition at a time.
   */
  commit?(transaction: Transaction<Schema>, batch: readonly Delivery[]): Promise<void>;
}

export interface RetryDelays {
  readonly firstMilliseconds: number;
  readonly mostMilliseconds: number;
}

export interface Delivery {
  readonly address: PartitionAddress;
  readonly record: EventRecord;
  /** Counts from 1. */
  readonly attempt: number;
}

export interface Failure {
  /** Which of the batch. */
  readonly index: number;
  readonly error: string;
  /** Trying again would not help: it becomes a dead letter at once. */
  readonly final?: boolean;
}

export interface ConsumerStatus {
  /** Records that are appended and not passed yet, of all nodes; those of other routes count as well. */
  readonly lag: number;
  /** How long the oldest of these has waited; 0 when there is none. */
  readonly oldestAgeMilliseconds: number;
  /** Records that failed and those that wait behind them. */
  readonly parked: number;
  /** Records in calls of `handle` on this node. */
  readonly inFlight: number;
}

/** A consumer on this node. */
export interface Registration {
  /** Hands out nothing more; resolves when what is in hand has ended. The shares are kept. */
  pause(): Promise<void>;
  resume(): void;
  /** Asks `wants` again now: its answer has changed. */
  refresh(): void;
  /** Ends it on this node: what is in hand ends within the bound of a shutdown, other nodes go on. */
  remove(): Promise<void>;
  status(): Promise<ConsumerStatus>;
}

export const defaultBatchBytes = 4 * 1024 * 1024;
