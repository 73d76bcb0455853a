/** How much a key may take: a sustained rate, and how much of it may be used at once. */
export interface LimitPolicy {
  readonly perSecond: number;
  readonly burst: number;
}

export interface LimitDecision {
  readonly allowed: boolean;
  /** What may be taken at once after this. */
  readonly remaining: number;
  /** Seconds until the whole burst is available again. */
  readonly resetSeconds: number;
  /** Seconds to wait before trying again; 0 when allowed. */
  readonly retryAfterSeconds: number;
}

/**
 * The limiter port: a token bucket for each key. The memory adapter serves one process and answers at
 * once; the PostgreSQL adapter shares one bucket among several nodes. A bucket is measured in time, so when
 * the policy of a key changes the part of the burst that is used up stays the same.
 */
export interface Limiter {
  take(key: string, policy: LimitPolicy): LimitDecision | Promise<LimitDecision>;
  close(): Promise<void>;
}
