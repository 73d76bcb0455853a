import type { Log } from './log.ts';

/** Work that is done again and again in the background. One kind of work never runs twice at once. */
export class Schedule {
  readonly #log: Log;
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #running = new Set<Promise<void>>();

  constructor(log: Log) {
    this.#log = log;
  }

  every(milliseconds: number, name: string, work: () => Promise<void>): void {
    let busy = false;
    const timer = setInterval(() => {
      if (busy) return;
      busy = true;
      const run = work()
        .catch((error: unknown) => this.#log.warn({ event: name, error }, 'background work failed'))
        .finally(() => {
          busy = false;
          this.#running.delete(run);
        });
      this.#running.add(run);
    }, milliseconds);
    timer.unref();
    this.#timers.push(timer);
  }

  /** Starts nothing more and waits for what is running. */
  async close(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    await Promise.all(this.#running);
  }
}
