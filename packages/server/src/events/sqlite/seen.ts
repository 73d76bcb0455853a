import { hash } from 'node:crypto';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { type Digest, digestBytes, readDigest } from './digest.ts';
import { DigestFilter } from './digest-filter.ts';
import { Generation } from './generation.ts';

const bucketsInWindow = 4;
const generationIds = 65_536;
const tidiedAtOnce = 2_000;
const mergedAtOnce = 4_096;

export interface SeenIdsOptions {
  readonly windowMilliseconds: number;
  /** From how many ids on those in memory move to the table. */
  readonly memoryIds?: number;
}

/**
 * The ids that must not be appended again, as digests in buckets by the time they came. A bucket counts
 * until the window has passed since its end, so an id is refused for the window and at most a quarter more.
 *
 * ```
 * id ──> generation in memory ──(too many in memory)──> table seen
 *        and one row of seen_recent for each commit
 * ```
 *
 * A sorted table alone would write one page anew for nearly every id. Instead a commit writes its digests
 * next to each other, and memory answers whether one was there before. When there are too many for that,
 * the oldest generation is merged into the table, many digests a page, and its rows are let go of; when it
 * is out of date, it is let go of without. After a start, memory is read back from the rows.
 *
 * `turnTo`, `add`, `store` and `tidy` belong into a transaction; what they change in memory counts only
 * with `committed`.
 */
export class SeenIds {
  readonly #database: DatabaseSync;
  readonly #windowMilliseconds: number;
  readonly #bucketMilliseconds: number;
  readonly #memoryIds: number;
  readonly #insertRow: StatementSync;
  readonly #deleteRows: StatementSync;
  readonly #merge: StatementSync;
  readonly #prune: StatementSync;
  /** Oldest first; ids are added to the last. */
  readonly #generations: Generation[];
  /** Those that count now, latest first: what comes twice mostly does so soon. */
  #live: Generation[] = [];
  /** The buckets of the table, with a filter of what is in them unless they are from before the start. */
  readonly #buckets: Map<number, DigestFilter | undefined>;
  #liveBuckets = '';
  #liveFilters: (DigestFilter | undefined)[] = [];
  #find: StatementSync | undefined;
  readonly #digest: Digest = new Uint32Array(4);
  /** The digests that this transaction adds, one after the other. */
  #added = Buffer.alloc(1024);
  #addedLength = 0;
  #afterCommit: (() => void)[] = [];
  #scratch = Buffer.alloc(1024);

  constructor(database: DatabaseSync, options: SeenIdsOptions) {
    this.#database = database;
    this.#windowMilliseconds = options.windowMilliseconds;
    this.#bucketMilliseconds = Math.max(1, Math.ceil(options.windowMilliseconds / bucketsInWindow));
    this.#memoryIds = options.memoryIds ?? 2 * generationIds;
    this.#insertRow = database.prepare('insert into seen_recent (bucket, digests) values (?, ?)');
    this.#deleteRows = database.prepare(
      `delete from seen_recent where id in (
        select id from seen_recent where id <= ? order by id limit ${tidiedAtOnce})`,
    );
    this.#merge = database.prepare('insert or ignore into seen (bucket, digest) values (?, ?)');
    this.#prune = database.prepare(
      `delete from seen where bucket = ?1
        and digest in (select digest from seen where bucket = ?1 limit ${tidiedAtOnce})`,
    );
    this.#buckets = storedBuckets(database);
    this.#generations = storedGenerations(database);
  }

  /** Prepares for ids that come now. */
  turnTo(now: number): void {
    const bucket = Math.floor(now / this.#bucketMilliseconds) * this.#bucketMilliseconds;
    const active = this.#generations.at(-1);
    if (active?.bucket !== bucket || active.count >= generationIds) {
      this.#generations.push(new Generation(bucket));
    }
    this.#live = this.#generations.filter((generation) => !this.#isOver(generation.bucket, now)).reverse();
    const live = [...this.#buckets].filter(([start]) => !this.#isOver(start, now));
    const liveBuckets = live.map(([start]) => start).join(', ');
    if (liveBuckets === this.#liveBuckets) return;
    this.#liveBuckets = liveBuckets;
    this.#liveFilters = live.map(([, filter]) => filter);
    this.#find =
      liveBuckets === ''
        ? undefined
        : this.#database.prepare(`select 1 from seen where bucket in (${liveBuckets}) and digest = ?`);
  }

  /** Remembers an id of a topic, given as UTF-8; false when it was seen before. */
  add(topic: number, source: Buffer, start: number, end: number): boolean {
    const length = 8 + end - start;
    if (length > this.#scratch.length) this.#scratch = Buffer.alloc(2 * length);
    this.#scratch.writeDoubleLE(topic, 0);
    source.copy(this.#scratch, 8, start, end);
    const digest = hash('sha256', this.#scratch.subarray(0, length), 'latin1');
    this.#reserve(digestBytes);
    this.#added.write(digest, this.#addedLength, digestBytes, 'latin1');
    readDigest(this.#added, this.#addedLength, this.#digest);
    if (this.#has(this.#digest)) return false;
    this.#live[0]?.add(this.#digest);
    this.#addedLength += digestBytes;
    return true;
  }

  /** Writes the ids that were added. */
  store(): void {
    const active = this.#live[0];
    if (this.#addedLength === 0 || active === undefined) return;
    const digests = this.#added.subarray(0, this.#addedLength);
    active.lastRow = Number(this.#insertRow.run(active.bucket, digests).lastInsertRowid);
    // More comes than is tidied away meanwhile, so whoever adds has to help.
    const helping = (2 * this.#addedLength) / digestBytes;
    if (this.#isCrowded(2)) this.#mergeSome(Math.max(mergedAtOnce, helping));
  }

  isTidy(now: number): boolean {
    const oldest = this.#generations[0];
    const isUseless = oldest !== undefined && (oldest.isMerged || this.#isOver(oldest.bucket, now));
    return !isUseless && !this.#isCrowded(1) && this.#overBucket(now) === undefined;
  }

  /** Does some of what keeps memory and the file small. */
  tidy(now: number): void {
    this.#pruneSome(now);
    const oldest = this.#generations[0];
    if (oldest === undefined) return;
    if (oldest.isMerged || this.#isOver(oldest.bucket, now)) this.#releaseSome(oldest);
    else if (this.#isCrowded(1)) this.#mergeSome(mergedAtOnce);
  }

  committed(): void {
    this.#addedLength = 0;
    for (const change of this.#afterCommit.splice(0)) change();
  }

  rolledBack(): void {
    if (this.#addedLength > 0) this.#live[0]?.delete(this.#added.subarray(0, this.#addedLength));
    this.#addedLength = 0;
    this.#afterCommit = [];
  }

  #has(digest: Digest): boolean {
    for (const generation of this.#live) if (generation.has(digest)) return true;
    for (const filter of this.#liveFilters) {
      if (filter !== undefined && !filter.mayHave(digest)) continue;
      const bytes = this.#added.subarray(this.#addedLength, this.#addedLength + digestBytes);
      return this.#find?.get(bytes) !== undefined;
    }
    return false;
  }

  #reserve(bytes: number): void {
    if (this.#addedLength + bytes <= this.#added.length) return;
    const larger = Buffer.alloc(2 * (this.#addedLength + bytes));
    this.#added.copy(larger, 0, 0, this.#addedLength);
    this.#added = larger;
  }

  /** Moves some of the oldest generation to the table; it stays in memory until all of it is there. */
  #mergeSome(enough: number): void {
    const oldest = this.#generations[0];
    if (oldest === undefined || oldest.isMerged) return;
    const { bucket } = oldest;
    const { digests, mergedPlaces } = oldest.unmerged(enough);
    const filter = this.#buckets.has(bucket) ? this.#buckets.get(bucket) : new DigestFilter();
    const digest: Digest = new Uint32Array(4);
    for (let start = 0; start < digests.length; start += digestBytes) {
      this.#merge.run(bucket, digests.subarray(start, start + digestBytes));
      readDigest(digests, start, digest);
      filter?.add(digest);
    }
    this.#afterCommit.push(() => {
      this.#buckets.set(bucket, filter);
      oldest.mergedPlaces = mergedPlaces;
    });
  }

  /** Deletes some of the rows of the oldest generation, and forgets it with the last. */
  #releaseSome(oldest: Generation): void {
    const { changes } = this.#deleteRows.run(oldest.lastRow);
    if (changes === tidiedAtOnce) return;
    this.#afterCommit.push(() => {
      this.#generations.shift();
      this.#live = this.#live.filter((generation) => generation !== oldest);
    });
  }

  #pruneSome(now: number): void {
    const bucket = this.#overBucket(now);
    if (bucket === undefined) return;
    const { changes } = this.#prune.run(bucket);
    if (changes < tidiedAtOnce) this.#afterCommit.push(() => this.#buckets.delete(bucket));
  }

  /** Whether so many times what should be in memory is, with something to merge. */
  #isCrowded(times: number): boolean {
    if (this.#generations.length < 2) return false;
    let count = 0;
    for (const generation of this.#generations) if (!generation.isMerged) count += generation.count;
    return count > times * this.#memoryIds;
  }

  #overBucket(now: number): number | undefined {
    for (const bucket of this.#buckets.keys()) if (this.#isOver(bucket, now)) return bucket;
    return undefined;
  }

  /** A bucket far in the future is from a clock that was wrong, and would otherwise never end. */
  #isOver(start: number, now: number): boolean {
    const end = start + this.#bucketMilliseconds;
    return end + this.#windowMilliseconds <= now || start > now + this.#windowMilliseconds;
  }
}

/** Steps from bucket to bucket, so that the cost does not grow with what is in them. */
function storedBuckets(database: DatabaseSync): Map<number, undefined> {
  const next = database.prepare('select min(bucket) as bucket from seen where bucket > ?');
  const buckets = new Map<number, undefined>();
  for (let last = Number.NEGATIVE_INFINITY; ; ) {
    const bucket = next.get(last)?.bucket;
    if (typeof bucket !== 'number') return buckets;
    buckets.set(bucket, undefined);
    last = bucket;
  }
}

function storedGenerations(database: DatabaseSync): Generation[] {
  const rows = database.prepare('select id, bucket, digests from seen_recent order by id');
  const generations: Generation[] = [];
  const digest: Digest = new Uint32Array(4);
  for (const { id, bucket, digests } of rows.iterate()) {
    if (!(digests instanceof Uint8Array)) throw new Error('The event log has a row of no digests');
    const last = generations.at(-1);
    const isNext = last === undefined || last.bucket !== bucket || last.count >= generationIds;
    const current = isNext ? new Generation(Number(bucket)) : last;
    if (isNext) generations.push(current);
    const bytes = Buffer.from(digests.buffer, digests.byteOffset, digests.byteLength);
    for (let start = 0; start < bytes.length; start += digestBytes) {
      readDigest(bytes, start, digest);
      if (!current.has(digest)) current.add(digest);
    }
    current.lastRow = Number(id);
  }
  return generations;
}
