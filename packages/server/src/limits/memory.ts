import type { Clock } from '../platform/clock.ts';
import { bucketOf, decide, takeFrom } from './bucket.ts';
import type { Limiter } from './limiter.ts';

/** How many takes pass between two sweeps of buckets that are full again and need no memory. */
const sweepEvery = 10_000;

/** The limiter of a single process. */
export function memoryLimiter(clock: Clock): Limiter {
  const fullAt = new Map<string, number>();
  let untilSweep = sweepEvery;

  function sweep(now: number): void {
    for (const [key, time] of fullAt) if (time <= now) fullAt.delete(key);
    untilSweep = sweepEvery;
  }

  return {
    take(key, policy) {
      const now = clock.now() * 1000;
      untilSweep -= 1;
      if (untilSweep <= 0) sweep(now);
      const bucket = bucketOf(policy);
      const before = fullAt.get(key) ?? 0;
      const after = takeFrom(bucket, before, now, 1);
      if (after === undefined) return decide(bucket, before, now, false);
      fullAt.set(key, after);
      return decide(bucket, after, now, true);
    },
    async close() {
      fullAt.clear();
    },
  };
}
