import { Worker } from 'node:worker_threads';
import type { Opening } from './protocol.ts';

export interface ThreadOptions<To, From> {
  readonly name: string;
  readonly entry: URL;
  /** The thread starts at once, but opens the file only when this has resolved. */
  readonly after?: Promise<unknown>;
  readonly open: To;
  readonly close: To;
  hear(message: From): void;
  /** The thread ended by itself. */
  onEnd(error: Error): void;
}

const closeMilliseconds = 20_000;

/** A thread that holds one connection to the file, so that the main thread never waits for a disk. */
export class Thread<To, From> {
  readonly #worker: Worker;
  readonly #close: To;
  #isClosing = false;

  private constructor(worker: Worker, options: ThreadOptions<To, From>) {
    this.#worker = worker;
    this.#close = options.close;
    let ended = false;
    const end = (error: Error) => {
      if (!ended && !this.#isClosing) options.onEnd(error);
      ended = true;
    };
    worker.on('message', (message: From) => options.hear(message));
    worker.on('error', end);
    worker.on('exit', () => end(new Error(`The thread ${options.name} ended`)));
  }

  /** Starts the thread and has it open the file; rejects when that cannot be done. */
  static async open<To, From>(options: ThreadOptions<To, From>): Promise<Thread<To, From>> {
    const { name, entry } = options;
    const worker = new Worker(entry, { name, resourceLimits: { maxYoungGenerationSizeMb: 8 } });
    const opened = new Promise<void>((resolve, reject) => {
      worker.once('error', reject);
      worker.once('exit', () => reject(new Error(`The thread ${name} ended`)));
      worker.once('message', (message: Opening) => {
        if (message.kind === 'refused') reject(new Error(message.message));
        else resolve();
      });
    });
    opened.catch(() => {});
    try {
      await options.after;
      worker.postMessage(options.open);
      await opened;
    } catch (error) {
      await worker.terminate();
      throw error;
    }
    return new Thread(worker, options);
  }

  send(message: To, transfer: ArrayBuffer[] = []): void {
    this.#worker.postMessage(message, transfer);
  }

  /** Has the thread close the file and waits for its end, which is forced when it takes too long. */
  async close(): Promise<void> {
    this.#isClosing = true;
    await new Promise<void>((resolve) => {
      const limit = setTimeout(() => this.#worker.terminate(), closeMilliseconds);
      this.#worker.once('exit', () => {
        clearTimeout(limit);
        resolve();
      });
      this.send(this.#close);
    });
  }

  /** Ends the thread as it is. */
  async terminate(): Promise<void> {
    this.#isClosing = true;
    await this.#worker.terminate();
  }
}
