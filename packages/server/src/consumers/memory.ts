/** The bytes that all consumers of a node may have read ahead, together. */
export class Memory {
  readonly #limit: number;
  #used = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get used(): number {
    return this.#used;
  }

  hasRoom(): boolean {
    return this.#used < this.#limit;
  }

  /** Takes or, with a negative number, gives back. */
  take(bytes: number): void {
    this.#used += bytes;
  }
}
