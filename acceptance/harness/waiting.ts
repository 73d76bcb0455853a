import { setTimeout as pause } from 'node:timers/promises';

const pollMilliseconds = 25;

/** Asks again and again until the answer is no longer undefined, and fails when that takes too long. */
export async function eventually<T>(
  what: string,
  milliseconds: number,
  ask: () => Promise<T | undefined> | T | undefined,
  everyMilliseconds = pollMilliseconds,
): Promise<T> {
  const end = performance.now() + milliseconds;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    if (performance.now() > end) throw new Error(`${what}: not within ${milliseconds} ms`);
    await pause(everyMilliseconds);
  }
}

/** The value in the middle. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
