import { Worker } from 'node:worker_threads';
import { DatabaseBusyError, DatabaseUnavailableError } from '../errors.ts';
import type { Answer, EngineOptions, FromThread, Reply, Request, ToThread } from './protocol.ts';
import { errorOf } from './result-codes.ts';

export interface SqliteThreadOptions extends EngineOptions {
  /** The thread starts at once, but opens the file only when this has resolved. */
  readonly after?: Promise<unknown>;
  /** Requests that may wait for the thread; more are refused. */
  readonly queueLimit: number;
  /** The disk failed under a change or the thread ended by itself: nothing more may be acknowledged. */
  onFatal(error: Error): void;
}

interface Pending {
  readonly request: Request;
  resolve(answer: Answer<never>): void;
  reject(error: Error): void;
}

/** Two keep the thread busy while replies travel; more would only make the batches smaller. */
const batchesInFlight = 2;
const batchSize = 128;
const workerEntry = new URL('./worker.ts', import.meta.url);
const closeMilliseconds = 10_000;

/**
 * The main thread's end of a thread that holds one connection. Requests made in one turn of the event
 * loop, or while the thread is busy, travel in one message, which is most of what a small query costs.
 */
export class SqliteThread {
  readonly #worker: Worker;
  readonly #options: SqliteThreadOptions;
  #waiting: Pending[] = [];
  readonly #sent: Pending[][] = [];
  #scheduled = false;
  #ended: Error | undefined;
  #closing = false;
  #closed = false;
  #whenIdle: (() => void)[] = [];

  private constructor(worker: Worker, options: SqliteThreadOptions) {
    this.#worker = worker;
    this.#options = options;
    worker.on('message', (message: FromThread<never>) => {
      if (message.kind === 'replies') this.#receive(message.replies);
    });
    worker.on('error', (error: Error) => this.#end(error));
    worker.on('exit', () => this.#end(new Error('The database thread ended')));
  }

  /** Starts the thread and opens the file; rejects when it cannot be opened. */
  static async open(options: SqliteThreadOptions, entry = workerEntry): Promise<SqliteThread> {
    const { path, mode } = options;
    const worker = new Worker(entry, {
      name: `sqlite-${mode}`,
      resourceLimits: { maxYoungGenerationSizeMb: 8 },
    });
    const opened = new Promise<void>((resolve, reject) => {
      worker.once('error', reject);
      worker.once('exit', () => reject(new Error('The database thread ended')));
      worker.once('message', (message: FromThread<never>) => {
        if (message.kind === 'refused') reject(new Error(message.message));
        else resolve();
      });
    });
    opened.catch(() => {});
    try {
      await options.after;
      const open: ToThread = { kind: 'open', path, mode };
      worker.postMessage(open);
      await opened;
    } catch (error) {
      await worker.terminate();
      throw error;
    }
    return new SqliteThread(worker, options);
  }

  send(request: Request): Promise<Answer<never>> {
    if (this.#ended || this.#closing) {
      const why = this.#ended?.message ?? 'The database is closed';
      return Promise.reject(new DatabaseUnavailableError(why, { cause: this.#ended }));
    }
    if (this.#waiting.length >= this.#options.queueLimit) {
      return Promise.reject(new DatabaseBusyError('Too many queries are waiting for the database'));
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ request, resolve, reject });
      this.#schedule();
    });
  }

  /** Waits for what has been sent, closes the file and ends the thread. */
  async close(): Promise<void> {
    if (this.#closing) return;
    this.#closing = true;
    while (this.#waiting.length > 0 || this.#sent.length > 0) {
      await new Promise<void>((resolve) => this.#whenIdle.push(resolve));
    }
    if (this.#ended) {
      await this.#worker.terminate();
      return;
    }
    this.#closed = true;
    await new Promise<void>((resolve) => {
      const limit = setTimeout(() => this.#worker.terminate(), closeMilliseconds);
      this.#worker.once('exit', () => {
        clearTimeout(limit);
        resolve();
      });
      this.#post({ kind: 'close' });
    });
  }

  #schedule(): void {
    if (this.#scheduled || this.#sent.length >= batchesInFlight) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#flush();
    });
  }

  #flush(): void {
    if (this.#ended || this.#waiting.length === 0 || this.#sent.length >= batchesInFlight) return;
    const batch = this.#waiting.splice(0, batchSize);
    this.#sent.push(batch);
    this.#post({ kind: 'requests', requests: batch.map((pending) => pending.request) });
    if (this.#waiting.length > 0) this.#schedule();
  }

  #post(message: ToThread): void {
    this.#worker.postMessage(message);
  }

  #receive(replies: readonly Reply<never>[]): void {
    const batch = this.#sent.shift() ?? [];
    batch.forEach((pending, index) => {
      const reply = replies[index];
      if (reply === undefined) pending.reject(new Error('The database thread gave no reply'));
      else if ('answer' in reply) pending.resolve(reply.answer);
      else {
        const error = errorOf(reply.failure);
        pending.reject(error);
        if (reply.failure.fatal) this.#end(error);
      }
    });
    if (this.#waiting.length > 0) this.#schedule();
    else if (this.#sent.length === 0) this.#tellIdle();
  }

  #end(error: Error): void {
    if (this.#ended || this.#closed) return;
    this.#ended = error;
    const unavailable = new DatabaseUnavailableError(error.message, { cause: error });
    for (const pending of [...this.#sent.flat(), ...this.#waiting]) pending.reject(unavailable);
    this.#sent.length = 0;
    this.#waiting = [];
    this.#tellIdle();
    this.#options.onFatal(error);
  }

  #tellIdle(): void {
    for (const resolve of this.#whenIdle.splice(0)) resolve();
  }
}
