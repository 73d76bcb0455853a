import type { Digest } from './digest.ts';

const bits = 24;

/**
 * Says of most digests that they are not in a bucket of the table, without looking there: a Bloom filter of
 * two hashes, which are words of the digest. With four million digests it errs once in eight.
 */
export class DigestFilter {
  readonly #words = new Uint32Array(1 << (bits - 5));

  add(digest: Digest): void {
    this.#set((digest[1] ?? 0) >>> (32 - bits));
    this.#set((digest[2] ?? 0) >>> (32 - bits));
  }

  mayHave(digest: Digest): boolean {
    return this.#isSet((digest[1] ?? 0) >>> (32 - bits)) && this.#isSet((digest[2] ?? 0) >>> (32 - bits));
  }

  #set(bit: number): void {
    this.#words[bit >>> 5] = (this.#words[bit >>> 5] ?? 0) | (1 << (bit & 31));
  }

  #isSet(bit: number): boolean {
    return ((this.#words[bit >>> 5] ?? 0) & (1 << (bit & 31))) !== 0;
  }
}
