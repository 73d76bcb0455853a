import type { LimitDecision, LimitPolicy } from './limiter.ts';

/**
 * A token bucket kept as one number (the generic cell rate algorithm): the time at which the bucket would
 * be full again. Taking moves it on by the interval of one token; it may not lie further ahead than the
 * burst allows. Times are in microseconds, so that ten thousand tokens a second are still whole numbers.
 */
export interface Bucket {
  readonly interval: number;
  /** How far ahead of now the time of being full may lie. */
  readonly tolerance: number;
}

export function bucketOf(policy: LimitPolicy): Bucket {
  const interval = Math.max(1, Math.round(1_000_000 / policy.perSecond));
  return { interval, tolerance: interval * policy.burst };
}

/** The time of being full after taking, or undefined when the bucket does not hold that many. */
export function takeFrom(bucket: Bucket, fullAt: number, now: number, tokens: number): number | undefined {
  const next = Math.max(fullAt, now) + bucket.interval * tokens;
  return next - bucket.tolerance <= now ? next : undefined;
}

/** What a caller is told about a bucket. */
export function decide(bucket: Bucket, fullAt: number, now: number, allowed: boolean): LimitDecision {
  const ahead = Math.max(0, fullAt - now);
  const wait = Math.max(0, ahead + bucket.interval - bucket.tolerance);
  return {
    allowed,
    remaining: Math.max(0, Math.floor((bucket.tolerance - ahead) / bucket.interval)),
    resetSeconds: Math.ceil(ahead / 1_000_000),
    retryAfterSeconds: allowed ? 0 : Math.max(1, Math.ceil(wait / 1_000_000)),
  };
}
