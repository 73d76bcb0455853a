import type { NamedType } from '@millrace/contract';
import { MillraceError } from './millrace-error.ts';

export interface PublisherOptions {
  /** A JSON pointer to the key in each message, such as `/user`. */
  readonly keyPath?: string;
  /** A JSON pointer to the id. With it a batch whose fate is unknown is sent again: duplicates are dropped. */
  readonly idPath?: string;
  /** Messages in a request at most; 1,000 unless given. */
  readonly batchSize?: number;
  /** Characters in a request at most; 4 MiB unless given. */
  readonly batchCharacters?: number;
  /** How long a message waits for others; 50 ms unless given. */
  readonly lingerMilliseconds?: number;
  /** Messages that may wait or be on their way before `publish` waits; 50,000 unless given. */
  readonly mostPending?: number;
  /** The same in characters, for messages that are large; 64 Mi unless given. */
  readonly mostPendingCharacters?: number;
  /** Requests under way at a time; 2 unless given. Order within a key is kept with 1 only. */
  readonly concurrency?: number;
  /** Whether nothing more is sent after a request that failed, so that no later message overtakes one. */
  readonly stopOnFailure?: boolean;
  readonly signal?: AbortSignal | undefined;
  /** Is told of messages that were not accepted; without it `flush` rejects with the first of them. */
  readonly onRejected?: (rejection: Rejection) => void;
  /** Is told what became of the messages so far, after every request. */
  readonly onProgress?: (totals: PublisherTotals) => void;
}

export interface Rejection {
  /** How many messages were given to the publisher before it. */
  readonly index: number;
  readonly message: unknown;
  readonly code: string;
  readonly detail: string;
}

export interface PublisherTotals {
  readonly accepted: number;
  readonly duplicates: number;
  readonly rejected: number;
}

const usualBatch = 4 * 1024 * 1024;

interface Taken {
  readonly index: number;
  readonly message: unknown;
  readonly line: string;
}

type Send = (lines: string) => Promise<NamedType<'PublishedMany'>>;

/**
 * Publishes messages in batches in the background. At most so many wait: when it is full, `publish` waits
 * until there is room, so a fast producer is slowed down and memory is bounded.
 */
export class Publisher {
  readonly #send: Send;
  readonly #options: PublisherOptions;
  #waiting: Taken[] = [];
  /** Of the lines that wait. */
  #characters = 0;
  #taken = 0;
  #pending = 0;
  /** Of the lines that wait or are on their way. */
  #pendingCharacters = 0;
  #underWay = new Set<Promise<void>>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #room: (() => void)[] = [];
  #failure: Error | undefined;
  #totals: PublisherTotals = { accepted: 0, duplicates: 0, rejected: 0 };

  constructor(send: Send, options: PublisherOptions = {}) {
    this.#send = send;
    this.#options = options;
  }

  /** What became of the messages so far. */
  get totals(): PublisherTotals {
    return this.#totals;
  }

  /**
   * Takes a message; resolves when there is room for the next one, not when it is durable: that is what
   * `flush` is for.
   *
   * @example
   * ```ts
   * const publisher = millrace.topics.publisher('clicks', { keyPath: '/user' });
   * for (let index = 0; index < 10_000; index += 1) await publisher.publish({ user: `u${index % 100}`, index });
   * const { accepted } = await publisher.flush();
   * ```
   */
  publish(message: object): Promise<void> {
    return this.#take(message, JSON.stringify(message));
  }

  /**
   * Takes a message that is a line of JSON already.
   *
   * @example
   * ```ts
   * const publisher = millrace.topics.publisher('clicks', { keyPath: '/user' });
   * await publisher.publishLine('{"user":"u1","page":"/"}');
   * await publisher.flush();
   * ```
   */
  publishLine(line: string): Promise<void> {
    return this.#take(line, line);
  }

  async #take(message: unknown, line: string): Promise<void> {
    const { batchSize = 1000, batchCharacters = usualBatch, lingerMilliseconds = 50 } = this.#options;
    const { mostPending = 50_000, mostPendingCharacters = 16 * usualBatch } = this.#options;
    this.#refuse();
    while (this.#pending >= mostPending || this.#pendingCharacters >= mostPendingCharacters) {
      await new Promise<void>((resolve) => this.#room.push(resolve));
      this.#refuse();
    }
    if (this.#characters + line.length > batchCharacters) this.#start();
    this.#waiting.push({ index: this.#taken, message, line });
    this.#taken += 1;
    this.#characters += line.length + 1;
    this.#pendingCharacters += line.length + 1;
    this.#pending += 1;
    if (this.#waiting.length >= batchSize) this.#start();
    else this.#timer ??= setTimeout(() => this.#start(), lingerMilliseconds);
  }

  #refuse(): void {
    this.#options.signal?.throwIfAborted();
    if (this.#failure !== undefined) throw this.#failure;
  }

  /**
   * Drops what was not sent yet, waits for what is on its way, and answers what became of all that was sent.
   *
   * @example
   * ```ts
   * const publisher = millrace.topics.publisher('clicks', { keyPath: '/user' });
   * await publisher.publish({ user: 'u1', page: '/' });
   * const { accepted } = await publisher.abandon();
   * ```
   */
  async abandon(): Promise<PublisherTotals> {
    this.#drop();
    await Promise.all(this.#underWay);
    return this.#totals;
  }

  /**
   * Resolves when everything that was published is durable, with the totals; rejects when something was
   * not accepted and nobody is told by `onRejected`, or when the service could not be reached.
   */
  async flush(): Promise<PublisherTotals> {
    while (this.#waiting.length > 0 || this.#underWay.size > 0) {
      this.#start();
      await Promise.race(this.#underWay);
    }
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure;
    return this.#totals;
  }

  #start(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const { concurrency = 2, batchSize = 1000, batchCharacters = usualBatch } = this.#options;
    while (this.#waiting.length > 0 && this.#underWay.size < concurrency) {
      let count = 0;
      let characters = 0;
      for (const { line } of this.#waiting) {
        if (count === batchSize || (count > 0 && characters + line.length > batchCharacters)) break;
        count += 1;
        characters += line.length + 1;
      }
      const batch = this.#waiting.splice(0, count);
      this.#characters -= characters;
      const sending = this.#publishBatch(batch).finally(() => {
        this.#underWay.delete(sending);
        this.#pending -= batch.length;
        this.#pendingCharacters -= characters;
        for (const resolve of this.#room.splice(0)) resolve();
        if (this.#waiting.length > 0) this.#start();
      });
      this.#underWay.add(sending);
    }
  }

  #drop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#pending -= this.#waiting.length;
    this.#pendingCharacters -= this.#characters;
    this.#characters = 0;
    this.#waiting = [];
  }

  async #publishBatch(batch: readonly Taken[]): Promise<void> {
    try {
      const answer = await this.#send(batch.map(({ line }) => line).join('\n'));
      const { accepted, duplicates, rejected } = this.#totals;
      this.#totals = {
        accepted: accepted + answer.accepted,
        duplicates: duplicates + answer.duplicates,
        rejected: rejected + answer.rejected,
      };
      for (const { index, code, message } of answer.errors) {
        const { index: before = 0, message: refused } = batch[index] ?? {};
        this.#reject({ index: before, message: refused, code, detail: message });
      }
      this.#options.onProgress?.(this.#totals);
    } catch (error) {
      this.#failure ??= error instanceof Error ? error : new Error(String(error));
      if (this.#options.stopOnFailure === true) this.#drop();
    }
  }

  #reject(rejection: Rejection): void {
    if (this.#options.onRejected !== undefined) this.#options.onRejected(rejection);
    else this.#failure ??= new MillraceError({ code: rejection.code, status: 200, detail: rejection.detail });
  }
}
