import { ConverterError } from './process.ts';

const waitingLimit = 1000;

interface Waiting {
  readonly go: () => void;
  readonly refuse: (reason: unknown) => void;
}

/** Lets one at a time have the converter, in the order they came. */
export class Turns {
  readonly #waiting: Waiting[] = [];
  #taken = false;
  #closed = false;

  get taken(): boolean {
    return this.#taken;
  }

  /** Resolves when it is the caller's turn, who gives it back. */
  take(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(new ConverterError('The converter is closed.'));
      if (signal?.aborted === true) return reject(signal.reason);
      if (!this.#taken) {
        this.#taken = true;
        return resolve();
      }
      if (this.#waiting.length >= waitingLimit) {
        return reject(new ConverterError('Too much waits for the converter.'));
      }
      const leave = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
        reject(signal?.reason);
      };
      const stay = (): void => signal?.removeEventListener('abort', leave);
      const waiting: Waiting = {
        go: () => {
          stay();
          resolve();
        },
        refuse: (reason) => {
          stay();
          reject(reason);
        },
      };
      signal?.addEventListener('abort', leave, { once: true });
      this.#waiting.push(waiting);
    });
  }

  give(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#taken = false;
    else next.go();
  }

  /** Refuses those who wait and those who come. */
  close(): void {
    this.#closed = true;
    for (const { refuse } of this.#waiting.splice(0)) refuse(new ConverterError('The converter is closed.'));
  }
}
