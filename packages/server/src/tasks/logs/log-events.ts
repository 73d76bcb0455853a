import { timestamp } from '../../platform/clock.ts';
import type { LogLine } from './task-log.ts';

export interface LogEventOptions {
  /** After how long of silence to say so. */
  readonly quietMilliseconds?: number;
  /** Whether the reader may still read; asked twice a second at most. */
  readonly stillAllowed?: () => Promise<boolean>;
}

/** A line as it is shown to the outside. */
export function describeLine({ time, version, requestId, stream, text }: LogLine) {
  return { time: timestamp(time), version, requestId, stream, text };
}

const askAgainMilliseconds = 500;

/**
 * Lines as server-sent events, for `TaskLog.follow`. Silence is filled with comments, so that nobody takes
 * it for a lost connection, and so that a reader who may no longer read is noticed.
 *
 * The follower is made here from a signal, because it must end at once when the reader goes away, and not at
 * its next line.
 */
export function logEvents(
  follow: (signal: AbortSignal) => AsyncIterable<LogLine>,
  signal: AbortSignal,
  { quietMilliseconds = 15_000, stillAllowed = async () => true }: LogEventOptions = {},
): AsyncIterable<string> {
  return {
    [Symbol.asyncIterator]: () => {
      const leaving = new AbortController();
      const ended = AbortSignal.any([signal, leaving.signal]);
      const lines = follow(ended)[Symbol.asyncIterator]();
      let upcoming: Promise<IteratorResult<LogLine>> | undefined;
      let isOpening = true;
      let askedAt = performance.now();
      const mayRead = async () => {
        if (performance.now() - askedAt < askAgainMilliseconds) return true;
        askedAt = performance.now();
        return stillAllowed();
      };
      const done = { done: true, value: undefined } as const;
      return {
        next: async () => {
          upcoming ??= lines.next();
          if (isOpening) {
            isOpening = false;
            return { done: false, value: ': following\n\n' };
          }
          const result = await within(upcoming, quietMilliseconds);
          if (!ended.aborted && (await mayRead())) {
            if (result === undefined) return { done: false, value: ': nothing new\n\n' };
            upcoming = undefined;
            if (!result.done) {
              return { done: false, value: `data: ${JSON.stringify(describeLine(result.value))}\n\n` };
            }
          }
          leaving.abort();
          return done;
        },
        return: async () => {
          leaving.abort();
          upcoming?.catch(() => {});
          return done;
        },
      };
    },
  };
}

/** What is promised, or undefined where it takes longer. */
function within<T>(promise: Promise<T>, milliseconds: number): Promise<T | undefined> {
  const { promise: late, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => resolve(undefined), milliseconds);
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
