import type { Database } from '../database/database.ts';
import type { Log } from '../platform/log.ts';
import type { RangeTarget } from './ranges.ts';
import { listCursors } from './share-store.ts';

export interface RangeWaitsOptions {
  readonly consumerId: string;
  readonly database: Database;
  readonly log: Log;
  /** The cursor of a share as far as this node knows it; the one in the database is there or further. */
  cursorOf(topicName: string, partition: number): number;
}

/** How often the database is asked for cursors that another node may have moved without our hearing of it. */
const pollMilliseconds = 200;
const movedChannel = 'consumers.moved';

/** Those who wait for the cursors of one range consumer, on whatever node these are moved. */
export class RangeWaits {
  readonly #options: RangeWaitsOptions;
  readonly #waiting = new Map<string, Set<() => void>>();
  readonly #closed = new AbortController();
  #endListening: (() => void) | undefined;

  constructor(options: RangeWaitsOptions) {
    this.#options = options;
  }

  /** Tells all nodes that cursors of these topics were moved. */
  announce(topicNames: Iterable<string>): void {
    const { database, log } = this.#options;
    for (const topicName of new Set(topicNames)) {
      const name = this.#name(topicName);
      // Also when the announcement cannot be sent.
      this.#wake(name);
      database.announce(movedChannel, name).catch((error: unknown) => {
        log.warn({ event: 'consumers.announce-failed', error }, 'other nodes will see it later');
      });
    }
  }

  /** Whether the cursors are there, by what this node knows or else by the database. */
  async check(topicName: string, targets: readonly RangeTarget[]): Promise<boolean> {
    const { database, consumerId, cursorOf, log } = this.#options;
    if (targets.every(({ partition, offset }) => cursorOf(topicName, partition) >= offset)) return true;
    try {
      const cursors = await listCursors(database.query, consumerId, topicName);
      return targets.every(({ partition, offset }) => (cursors.get(partition) ?? 0) >= offset);
    } catch (error) {
      log.warn(
        { event: 'consumers.wait-failed', consumer: consumerId, error },
        'cursors are asked for again',
      );
      return false;
    }
  }

  /** True when the cursors are there, false when the signal aborts or nothing is waited for any more. */
  async reached(topicName: string, targets: readonly RangeTarget[], signal: AbortSignal): Promise<boolean> {
    const ended = AbortSignal.any([signal, this.#closed.signal]);
    if (!ended.aborted) this.#listen();
    while (!ended.aborted) {
      // Listening from before the look, so that no move is missed in between.
      const moved = this.#nextMove(topicName, ended);
      try {
        if (await this.check(topicName, targets)) return true;
        await moved.promise;
      } finally {
        moved.end();
      }
    }
    return false;
  }

  close(): void {
    this.#closed.abort();
    this.#endListening?.();
  }

  /** Resolves at the next move in the topic, when it is time to look anyway, or at the end. */
  #nextMove(topicName: string, ended: AbortSignal): { promise: Promise<void>; end(): void } {
    const { promise, resolve } = Promise.withResolvers<void>();
    const name = this.#name(topicName);
    const waiting = this.#waiting.get(name) ?? new Set();
    this.#waiting.set(name, waiting.add(resolve));
    const timer = setTimeout(resolve, pollMilliseconds);
    const abort = () => resolve();
    ended.addEventListener('abort', abort);
    const end = () => {
      clearTimeout(timer);
      ended.removeEventListener('abort', abort);
      waiting.delete(resolve);
      if (waiting.size === 0 && this.#waiting.get(name) === waiting) this.#waiting.delete(name);
    };
    return { promise, end };
  }

  #listen(): void {
    this.#endListening ??= this.#options.database.listen(movedChannel, (name) => this.#wake(name));
  }

  #wake(name: string): void {
    for (const resolve of this.#waiting.get(name) ?? []) resolve();
  }

  #name(topicName: string): string {
    return `${this.#options.consumerId}\n${topicName}`;
  }
}
