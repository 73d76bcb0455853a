import type { Clock } from './clock.ts';

interface Entry<Value> {
  readonly value: Value;
  readonly trustedUntil: number;
}

/**
 * Values read from the database and kept in memory until they are said to have changed, or until they can
 * no longer be trusted without asking.
 *
 * A value whose invalidation arrives while it is being read is handed to those who asked before the
 * change, and not kept, so a change is never overwritten by an older read.
 */
export class LoadingCache<Value> {
  readonly #load: (key: string) => Promise<Value | undefined>;
  readonly #clock: Clock;
  readonly #trustMilliseconds: number;
  readonly #capacity: number;
  readonly #entries = new Map<string, Entry<Value>>();
  readonly #loading = new Map<string, Promise<Value | undefined>>();

  constructor(options: {
    load: (key: string) => Promise<Value | undefined>;
    clock: Clock;
    trustMilliseconds: number;
    capacity: number;
  }) {
    this.#load = options.load;
    this.#clock = options.clock;
    this.#trustMilliseconds = options.trustMilliseconds;
    this.#capacity = options.capacity;
  }

  /** The value if it is at hand and trusted, without waiting. */
  peek(key: string): Value | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined || this.#clock.now() >= entry.trustedUntil) return undefined;
    return entry.value;
  }

  /** The value, read once however many ask for it at the same time. Absent values are not kept. */
  get(key: string): Promise<Value | undefined> {
    const known = this.peek(key);
    if (known !== undefined) return Promise.resolve(known);
    const underway = this.#loading.get(key);
    if (underway !== undefined) return underway;
    const asked = this.#clock.now();
    const loading = this.#load(key)
      .then((value) => {
        if (value !== undefined && this.#loading.get(key) === loading) this.#keep(key, value, asked);
        return value;
      })
      .finally(() => {
        if (this.#loading.get(key) === loading) this.#loading.delete(key);
      });
    this.#loading.set(key, loading);
    return loading;
  }

  /** Forgets a value, also one that is being read at this moment. */
  invalidate(key: string): void {
    this.#entries.delete(key);
    this.#loading.delete(key);
  }

  clear(): void {
    this.#entries.clear();
    this.#loading.clear();
  }

  #keep(key: string, value: Value, asked: number): void {
    this.#entries.delete(key);
    if (this.#entries.size >= this.#capacity) {
      const oldest = this.#entries.keys().next();
      if (!oldest.done) this.#entries.delete(oldest.value);
    }
    this.#entries.set(key, { value, trustedUntil: asked + this.#trustMilliseconds });
  }
}
