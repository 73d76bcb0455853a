import { type Digest, digestBytes, readDigest, writeDigest } from './digest.ts';

const leastBits = 10;

/**
 * Digests that came one after the other in one bucket of time: a table in memory with open addressing, in
 * which a digest lies at or shortly after the place that its first bits say. From end to end it is therefore
 * nearly sorted, as is the table on the disk that it may have to be merged into. An empty place begins with
 * eight zero bytes, which no digest does in practice.
 */
export class Generation {
  readonly bucket: number;
  #bits = leastBits;
  #words = new Uint32Array(4 << leastBits);
  #count = 0;
  /** The last row of `seen_recent` that holds some of them. */
  lastRow = 0;
  /** How many places are in the table on the disk as well. */
  mergedPlaces = 0;

  constructor(bucket: number) {
    this.bucket = bucket;
  }

  get count(): number {
    return this.#count;
  }

  get isMerged(): boolean {
    return this.mergedPlaces === 1 << this.#bits;
  }

  has(digest: Digest): boolean {
    const words = this.#words;
    const place = this.#placeOf(digest);
    return (words[place] ?? 0) !== 0 || (words[place + 1] ?? 0) !== 0;
  }

  add(digest: Digest): void {
    if (this.#count >= 3 << (this.#bits - 2)) this.#resize(this.#bits + 1);
    this.#words.set(digest, this.#placeOf(digest));
    this.#count += 1;
  }

  /** Takes digests out again, which lie one after the other. It is rare, so the rest is laid out anew. */
  delete(digests: Buffer): void {
    const removed = new Generation(this.bucket);
    const digest = new Uint32Array(4);
    for (let start = 0; start < digests.length; start += digestBytes) {
      readDigest(digests, start, digest);
      if (!removed.has(digest)) removed.add(digest);
    }
    this.#resize(this.#bits, removed);
  }

  /** The next digests to merge: those of as many places as it takes to have enough. */
  unmerged(enough: number): { digests: Buffer; mergedPlaces: number } {
    const digests = Buffer.alloc(enough * digestBytes);
    let length = 0;
    let place = this.mergedPlaces;
    for (; place < 1 << this.#bits && length < digests.length; place += 1) {
      const digest = this.#words.subarray(4 * place, 4 * place + 4);
      if (isEmpty(digest)) continue;
      writeDigest(digest, digests, length);
      length += digestBytes;
    }
    return { digests: digests.subarray(0, length), mergedPlaces: place };
  }

  /** Where a digest is, or would be. */
  #placeOf(digest: Digest): number {
    const words = this.#words;
    const [first = 0, second = 0, third = 0, fourth = 0] = [digest[0], digest[1], digest[2], digest[3]];
    let place = 4 * (first >>> (32 - this.#bits));
    for (;;) {
      if (words[place] === first && words[place + 1] === second) {
        if (words[place + 2] === third && words[place + 3] === fourth) return place;
      } else if (words[place] === 0 && words[place + 1] === 0) {
        return place;
      }
      place += 4;
      if (place === words.length) place = 0;
    }
  }

  #resize(bits: number, without?: Generation): void {
    const old = this.#words;
    this.#bits = bits;
    this.#words = new Uint32Array(4 << bits);
    this.#count = 0;
    for (let place = 0; place < old.length; place += 4) {
      const digest = old.subarray(place, place + 4);
      if (isEmpty(digest) || without?.has(digest)) continue;
      this.#words.set(digest, this.#placeOf(digest));
      this.#count += 1;
    }
  }
}

function isEmpty(digest: Digest): boolean {
  return digest[0] === 0 && digest[1] === 0;
}
