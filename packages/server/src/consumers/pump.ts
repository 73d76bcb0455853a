const mostMilliseconds = 60_000;

/** Runs something whenever it may have to do, once for all that changed in a turn, and at a time set before. */
export class Pump {
  readonly #run: () => void;
  #woken = false;
  #closed = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(run: () => void) {
    this.#run = run;
  }

  /** In a turn of its own, so that a consumer that is never waited for leaves time for everything else. */
  wake(): void {
    if (this.#woken || this.#closed) return;
    this.#woken = true;
    setImmediate(() => {
      this.#woken = false;
      if (this.#closed) return;
      clearTimeout(this.#timer);
      this.#run();
    });
  }

  /** Wakes later, unless something wakes it before. */
  wakeIn(milliseconds: number): void {
    clearTimeout(this.#timer);
    const wait = Math.min(Math.max(milliseconds, 1), mostMilliseconds);
    this.#timer = setTimeout(() => this.wake(), wait).unref();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }
}
