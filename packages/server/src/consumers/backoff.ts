import type { Random } from '../platform/random.ts';
import type { RetryDelays } from './consumer.ts';

/**
 * How long to wait after so many failures in a row: doubled each time up to the most, and anywhere in the
 * upper half of that, so that what failed together is not tried together again.
 */
export function retryDelay(delays: RetryDelays, failures: number, random: Random): number {
  const whole = Math.min(delays.mostMilliseconds, delays.firstMilliseconds * 2 ** Math.min(failures - 1, 40));
  const half = Math.floor(whole / 2);
  return Math.ceil(whole - half + random.integer(half + 1));
}
