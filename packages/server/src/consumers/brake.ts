import type { Random } from '../platform/random.ts';
import { retryDelay } from './backoff.ts';
import type { RetryDelays } from './consumer.ts';

/** So many calls in a row may fail as a whole before it is taken for more than bad records. */
const tolerated = 2;

/**
 * Slows a consumer whose calls fail as a whole, one after the other: then it is not the records, and
 * parking one after the other would only move the log into the database.
 */
export class Brake {
  readonly #delays: RetryDelays;
  readonly #random: Random;
  #failures = 0;
  /** Nothing new is handed out before this time. */
  until = 0;

  constructor(delays: RetryDelays, random: Random) {
    this.#delays = delays;
    this.#random = random;
  }

  succeeded(): void {
    this.#failures = 0;
    this.until = 0;
  }

  failed(now: number): void {
    // Calls that were under way together say no more than one.
    if (now < this.until) return;
    this.#failures += 1;
    if (this.#failures <= tolerated) return;
    this.until = now + retryDelay(this.#delays, this.#failures - tolerated, this.#random);
  }
}
