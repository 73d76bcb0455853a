/**
 * Lets a bounded number of jobs run at once and a bounded number wait. One more is refused at once, so
 * that costly work under attack turns into quick refusals instead of a growing queue.
 */
export class Gate {
  readonly #running: number;
  readonly #waiting: number;
  readonly #queue: (() => void)[] = [];
  #active = 0;

  constructor(limits: { running: number; waiting: number }) {
    this.#running = limits.running;
    this.#waiting = limits.waiting;
  }

  /** Runs the job when there is room; `undefined` when the queue is full. */
  async run<T>(job: () => Promise<T>): Promise<{ value: T } | undefined> {
    if (this.#active >= this.#running) {
      if (this.#queue.length >= this.#waiting) return undefined;
      await new Promise<void>((resume) => this.#queue.push(resume));
    } else {
      this.#active += 1;
    }
    try {
      return { value: await job() };
    } finally {
      const next = this.#queue.shift();
      if (next === undefined) this.#active -= 1;
      else next();
    }
  }
}
