import { DatabaseBusyError, DatabaseUnavailableError } from '../errors.ts';

export interface WriteQueueOptions {
  /** How many may wait; more are refused. */
  readonly limit: number;
  /** How long one may wait before it is refused. */
  readonly waitMilliseconds: number;
}

interface Waiting {
  readonly exclusive: boolean;
  /** Called in the turn in which it is let through, so that nothing of a later one can come before it. */
  enter(): void;
}

/**
 * Who may use the one connection that writes: any number of single writes, or one transaction, strictly in
 * the order they came. A write therefore never ends up in somebody else's open transaction.
 */
export class WriteQueue {
  readonly #options: WriteQueueOptions;
  readonly #waiting: Waiting[] = [];
  #held = false;
  #closed = false;
  #whenIdle: (() => void)[] = [];

  constructor(options: WriteQueueOptions) {
    this.#options = options;
  }

  /** Sends a write when no transaction is before it. */
  single<T>(send: () => Promise<T>): Promise<T> {
    return this.#pass(false, send);
  }

  /** Resolves when the connection is free; `leave` must be called once done with it. */
  async exclusive(): Promise<void> {
    await this.#pass(true, () => Promise.resolve());
  }

  leave(): void {
    this.#held = false;
    this.#letThrough();
  }

  /** Refuses who comes from now on and resolves when everybody who came before has left. */
  async close(): Promise<void> {
    this.#closed = true;
    while (this.#held || this.#waiting.length > 0) {
      await new Promise<void>((resolve) => this.#whenIdle.push(resolve));
    }
  }

  #pass<T>(exclusive: boolean, enter: () => Promise<T>): Promise<T> {
    if (this.#closed) return Promise.reject(new DatabaseUnavailableError('The database is closed'));
    if (!this.#held && this.#waiting.length === 0) {
      this.#held = exclusive;
      return enter();
    }
    if (this.#waiting.length >= this.#options.limit) {
      return Promise.reject(new DatabaseBusyError('Too many writes are waiting for the database'));
    }
    return new Promise((resolve, reject) => {
      const limit = setTimeout(() => {
        this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
        reject(new DatabaseBusyError('The database was busy with other writes for too long'));
        this.#tellWhenIdle();
      }, this.#options.waitMilliseconds);
      const waiting: Waiting = {
        exclusive,
        enter: () => {
          clearTimeout(limit);
          resolve(enter());
        },
      };
      this.#waiting.push(waiting);
    });
  }

  #letThrough(): void {
    while (!this.#held) {
      const next = this.#waiting.shift();
      if (next === undefined) break;
      this.#held = next.exclusive;
      next.enter();
    }
    this.#tellWhenIdle();
  }

  #tellWhenIdle(): void {
    if (!this.#held && this.#waiting.length === 0) for (const resolve of this.#whenIdle.splice(0)) resolve();
  }
}
