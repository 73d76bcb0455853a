export interface ParkedKey {
  /** How many of its records are parked. */
  rows: number;
  /** When its first record is to be tried. */
  dueAt: number;
  /** A call has its first records at this moment. */
  trying: boolean;
}

/**
 * The keys of a share that have parked records, as this node knows them: it alone parks and resolves
 * records of the share, so after reading them once it knows them all. Keys are as they are stored.
 */
export class ParkedKeys {
  readonly #keys = new Map<string, ParkedKey>();

  get size(): number {
    return this.#keys.size;
  }

  has(key: string): boolean {
    return this.#keys.size > 0 && this.#keys.has(key);
  }

  get(key: string): ParkedKey | undefined {
    return this.#keys.get(key);
  }

  *[Symbol.iterator](): Iterator<readonly [string, ParkedKey]> {
    yield* this.#keys;
  }

  /** One more record of the key, or some, are parked. When they are first, they decide when the key is due. */
  park(key: string, dueAt: number, rows = 1): ParkedKey {
    const known = this.#keys.get(key);
    if (known !== undefined) {
      known.rows += rows;
      return known;
    }
    const added = { rows, dueAt, trying: false };
    this.#keys.set(key, added);
    return added;
  }

  /** One record of the key is parked no more. The key is free when it was the last. */
  resolve(key: string): void {
    const known = this.#keys.get(key);
    if (known === undefined) return;
    known.rows -= 1;
    if (known.rows <= 0) this.#keys.delete(key);
  }

  delete(key: string): void {
    this.#keys.delete(key);
  }
}
