import type { ChildProcess } from 'node:child_process';

/** How long output may still come after the end of a process. */
const limitMs = 200;

/**
 * Waits for what an ended process said last: it is still in the pipes. Something else that holds them open
 * is not waited for.
 */
export function lastWords({ stdout, stderr, stdio }: ChildProcess): Promise<void> {
  const ends = [stdout, stderr, stdio[4]].map((stream) =>
    stream === null || stream === undefined || stream.destroyed
      ? Promise.resolve()
      : new Promise<void>((resolve) => stream.once('close', resolve)),
  );
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, limitMs);
    void Promise.all(ends).then(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
