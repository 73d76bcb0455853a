import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import type { Consumer, Delivery, Failure } from './consumer.ts';
import { textOf } from './consumers.fixture.ts';

/** A source of chance that a seed repeats. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Whether a node is up; what a dead one does has no effect. */
export interface Life {
  dead: boolean;
  readonly calls: Set<object>;
}

/**
 * What a consumer may see, checked call by call: no key in two calls at once, and no record before all
 * earlier ones of its key were handled or have failed so often that they are dead letters.
 */
export class Model {
  readonly wrongs: string[] = [];
  readonly handled = new Set<string>();
  readonly #chance: () => number;
  readonly #maxAttempts: number;
  readonly #failures = new Map<string, number>();
  readonly #active = new Map<string, object>();
  readonly #published = new Map<string, number>();
  calls = 0;
  deliveries = 0;

  constructor(chance: () => number, maxAttempts: number) {
    this.#chance = chance;
    this.#maxAttempts = maxAttempts;
  }

  /** The next message of a key: its place among them, and whether it is always refused. */
  next(key: string): string {
    const place = this.#published.get(key) ?? 0;
    this.#published.set(key, place + 1);
    return `${place}${this.#chance() < 0.04 ? ' poison' : ''}`;
  }

  get published(): { key: string; text: string }[] {
    return [...this.#published].flatMap(([key, count]) =>
      Array.from({ length: count }, (_, place) => ({ key, text: String(place) })),
    );
  }

  isDone(key: string, place: number): boolean {
    const id = `${key}:${place}`;
    return this.handled.has(id) || (this.#failures.get(id) ?? 0) >= this.#maxAttempts;
  }

  handle(life: Life): Consumer['handle'] {
    return async (batch, signal) => {
      if (life.dead) return new Promise(() => {});
      const call = {};
      life.calls.add(call);
      this.calls += 1;
      this.deliveries += batch.length;
      this.#begin(call, batch);
      const end = () => {
        for (const [key, owner] of this.#active) if (owner === call) this.#active.delete(key);
      };
      signal.addEventListener('abort', end, { once: true });
      await delay(this.#chance() < 0.5 ? 0 : this.#chance() * 6);
      end();
      if (life.dead) return new Promise(() => {});
      if (signal.aborted) throw new Error('aborted');
      return this.#end(batch);
    };
  }

  /** Nothing that a dead node had in hand is in hand any more. */
  forget(calls: ReadonlySet<object>): void {
    for (const [key, owner] of this.#active) if (calls.has(owner)) this.#active.delete(key);
  }

  #begin(call: object, batch: readonly Delivery[]): void {
    const inBatch = new Map<string, number>();
    for (const { record } of batch) {
      const place = Number.parseInt(textOf(record), 10);
      const { key } = record;
      const owner = this.#active.get(key);
      if (owner !== undefined && owner !== call) this.wrongs.push(`${key} is in two calls`);
      this.#active.set(key, call);
      const before = inBatch.get(key);
      if (before !== undefined && before >= place)
        this.wrongs.push(`${key}:${place} after ${before} in a batch`);
      for (let earlier = (before ?? -1) + 1; earlier < place; earlier += 1) {
        if (!this.isDone(key, earlier)) this.wrongs.push(`${key}:${place} came before ${earlier}`);
      }
      inBatch.set(key, place);
    }
  }

  #end(batch: readonly Delivery[]): Failure[] {
    const failures: Failure[] = [];
    const blocked = new Set<string>();
    const crash = this.#chance() < 0.04;
    for (const [index, { record }] of batch.entries()) {
      const text = textOf(record);
      const id = `${record.key}:${Number.parseInt(text, 10)}`;
      if (crash || text.endsWith('poison') || this.#chance() < 0.04) {
        // Behind one that failed, a record is not tried.
        if (!blocked.has(record.key)) this.#failures.set(id, (this.#failures.get(id) ?? 0) + 1);
        if ((this.#failures.get(id) ?? 0) < this.#maxAttempts) blocked.add(record.key);
        failures.push({ index, error: 'refused' });
      } else if (!blocked.has(record.key)) this.handled.add(id);
    }
    if (crash) throw new Error('crash');
    return failures;
  }

  check(): void {
    assert.deepEqual(this.wrongs.slice(0, 5), []);
  }
}
