/** Where every part of the service reads the time, so that tests can set it. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };

/** A clock that stands still until it is moved. */
export interface AdjustableClock extends Clock {
  advance(milliseconds: number): void;
  set(milliseconds: number): void;
}

export function adjustableClock(start: number): AdjustableClock {
  let current = start;
  return {
    now: () => current,
    advance: (milliseconds) => {
      current += milliseconds;
    },
    set: (milliseconds) => {
      current = milliseconds;
    },
  };
}

/** The wire form of a time: RFC 3339 in UTC with milliseconds. */
export function timestamp(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}
