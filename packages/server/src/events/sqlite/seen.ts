import { hash } from 'node:crypto';
import type { DatabaseSync, StatementSync } from 'node:sqlite';

const bucketsInWindow = 4;
const digestBytes = 16;
const prunedAtOnce = 2_000;

/**
 * The ids that must not be appended again, as digests in buckets by the time they came. A bucket counts
 * until the window has passed since its end, so an id is refused for the window and at most a quarter more.
 */
export class SeenIds {
  readonly #windowMilliseconds: number;
  readonly #bucketMilliseconds: number;
  readonly #database: DatabaseSync;
  readonly #prune: StatementSync;
  /** The buckets that are in the table, and the one of now. */
  #buckets: number[];
  #insert: StatementSync | undefined;
  #insertsInto = '';
  #scratch = Buffer.alloc(1024);

  constructor(database: DatabaseSync, windowMilliseconds: number) {
    this.#database = database;
    this.#windowMilliseconds = windowMilliseconds;
    this.#bucketMilliseconds = Math.max(1, Math.ceil(windowMilliseconds / bucketsInWindow));
    this.#prune = database.prepare(
      `delete from seen where bucket = ?1
        and digest in (select digest from seen where bucket = ?1 limit ${prunedAtOnce})`,
    );
    this.#buckets = storedBuckets(database);
  }

  /** Prepares for ids that come now. */
  turnTo(now: number): void {
    const bucket = Math.floor(now / this.#bucketMilliseconds) * this.#bucketMilliseconds;
    if (!this.#buckets.includes(bucket)) this.#buckets.push(bucket);
    const live = this.#buckets.filter((start) => !this.#isOver(start, now)).join(', ');
    const insertsInto = `${bucket}: ${live}`;
    if (insertsInto === this.#insertsInto) return;
    this.#insertsInto = insertsInto;
    this.#insert = this.#database.prepare(
      `insert into seen (bucket, digest) select ${bucket}, ?1
        where not exists (select 1 from seen where bucket in (${live}) and digest = ?1)`,
    );
  }

  /** Remembers an id of a topic, given as UTF-8; false when it was seen before. */
  add(topic: number, source: Buffer, start: number, end: number): boolean {
    const length = 8 + end - start;
    if (length > this.#scratch.length) this.#scratch = Buffer.alloc(2 * length);
    this.#scratch.writeDoubleLE(topic, 0);
    source.copy(this.#scratch, 8, start, end);
    const digest = hash('sha256', this.#scratch.subarray(0, length), 'buffer').subarray(0, digestBytes);
    return this.#insert?.run(digest).changes === 1;
  }

  /** Whether there is something that `prune` would remove. */
  isPrunable(now: number): boolean {
    return this.#buckets.some((start) => this.#isOver(start, now));
  }

  /** Removes some of what no longer counts. */
  prune(now: number): void {
    const start = this.#buckets.find((bucket) => this.#isOver(bucket, now));
    if (start === undefined) return;
    const { changes } = this.#prune.run(start);
    if (changes < prunedAtOnce) this.#buckets = this.#buckets.filter((bucket) => bucket !== start);
  }

  /** A bucket far in the future is from a clock that was wrong, and would otherwise never end. */
  #isOver(start: number, now: number): boolean {
    const end = start + this.#bucketMilliseconds;
    return end + this.#windowMilliseconds <= now || start > now + this.#windowMilliseconds;
  }
}

/** Steps from bucket to bucket, so that the cost does not grow with what is in them. */
function storedBuckets(database: DatabaseSync): number[] {
  const next = database.prepare('select min(bucket) as bucket from seen where bucket > ?');
  const buckets: number[] = [];
  for (let last = Number.NEGATIVE_INFINITY; ; ) {
    const bucket = next.get(last)?.bucket;
    if (typeof bucket !== 'number') return buckets;
    buckets.push(bucket);
    last = bucket;
  }
}
