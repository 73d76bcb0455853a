/** Numbers that look random and are the same again for the same seed. */
export interface SeededRandom {
  /** From 0 up to, but not including, 1. */
  next(): number;
  /** A whole number from the first to the last, both included. */
  between(first: number, last: number): number;
  chance(probability: number): boolean;
  /** A generator of its own, so that how often one is asked does not change another. */
  fork(): SeededRandom;
}

/** Mulberry32: one addition and some mixing, good enough to choose what a test does. */
export function seededRandom(seed: number): SeededRandom {
  let state = seed >>> 0;
  const nextInteger = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
  const next = () => nextInteger() / 2 ** 32;
  return {
    next,
    between: (first, last) => first + Math.floor(next() * (last - first + 1)),
    chance: (probability) => next() < probability,
    fork: () => seededRandom(nextInteger()),
  };
}
