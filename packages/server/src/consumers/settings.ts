import type { Database } from '../database/database.ts';
import type { EventLog } from '../events/events.ts';
import type { Clock } from '../platform/clock.ts';
import type { Log } from '../platform/log.ts';
import type { Random } from '../platform/random.ts';

export interface RunnerTimings {
  /** A node that has not been heard of for so long is dead, and its shares are taken by others. */
  readonly leaseMilliseconds: number;
  readonly heartbeatMilliseconds: number;
  /** How often the log is asked for what it did not tell of. */
  readonly pollMilliseconds: number;
  /** How long calls under way may take when the runner closes, before they are aborted. */
  readonly drainMilliseconds: number;
  /** How long records stay in the log at least. */
  readonly retentionMilliseconds: number;
}

export interface RunnerLimits {
  /** Bytes that all consumers of this node together may have read ahead. */
  readonly memoryBytes: number;
  /** Keys of a consumer that may be parked on this node before it is given nothing new. */
  readonly parkedKeys: number;
}

export interface RunnerOptions {
  readonly database: Database;
  readonly events: EventLog;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Stands for one process at a time. A process that starts with the id of a dead one takes its place at once. */
  readonly nodeId: string;
  readonly timings?: Partial<RunnerTimings>;
  readonly limits?: Partial<RunnerLimits>;
  /** A time in milliseconds that never jumps. */
  readonly monotonic?: () => number;
}

/** A dead node's shares move within a lease, a heartbeat of another node and a moment: under ten seconds. */
export const defaultTimings: RunnerTimings = {
  leaseMilliseconds: 7_000,
  heartbeatMilliseconds: 2_000,
  pollMilliseconds: 30_000,
  drainMilliseconds: 10_000,
  retentionMilliseconds: 86_400_000,
};

export const defaultLimits: RunnerLimits = { memoryBytes: 128 * 1024 * 1024, parkedKeys: 10_000 };
