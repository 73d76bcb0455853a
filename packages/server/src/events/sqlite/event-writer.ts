import { DatabaseSync, type StatementSync } from 'node:sqlite';
import type { PartitionAddress } from '../events.ts';
import {
  attributesInPrefix,
  deduplicateInPrefix,
  type EncodedBatch,
  partitionInPrefix,
  prefixBytes,
} from './batch.ts';
import { ChunkPacker } from './chunk.ts';
import { type Partition, Partitions } from './partitions.ts';
import { bodyStart, idStart, recordEnd } from './record.ts';
import { prepareSchema } from './schema.ts';
import { SeenIds } from './seen.ts';

export interface EventWriterOptions {
  readonly path: string;
  readonly windowMilliseconds: number;
  readonly now: number;
}

/** What became of a batch. */
export interface Placed {
  /** The offset of each entry, 0 for a duplicate. */
  readonly offsets: Float64Array<ArrayBuffer>;
  /** For each topic of the batch, a bit for each partition that was appended to. */
  readonly partitions: number[];
}

export interface Trim {
  readonly address: PartitionAddress;
  readonly through: number;
}

interface Leftover {
  readonly topic: number;
  readonly partition: number;
  readonly through: number;
}

const busyTimeoutMilliseconds = 5_000;
const cacheKibibytes = 8_192;
/** Large enough that the overflow of a chunk is a short chain, small enough that a lone message writes little. */
const pageBytes = 8_192;
/** Commits wait for a checkpoint, which takes a few milliseconds at this size. */
const checkpointPages = 512;
const walKeptBytes = 64 * 1024 * 1024;
const chunksDeletedAtOnce = 64;

/**
 * The connection that writes. Every method is one transaction: when it returns, what it did is on the disk;
 * when it throws, nothing of it was done.
 */
export class EventWriter {
  readonly #database: DatabaseSync;
  readonly #begin: StatementSync;
  readonly #commit: StatementSync;
  readonly #insertChunk: StatementSync;
  readonly #markTrimmed: StatementSync;
  readonly #deleteChunks: StatementSync;
  readonly #partitions: Partitions;
  readonly #seen: SeenIds;
  readonly #packer = new ChunkPacker();
  #touched: Partition[] = [];
  #attributes = new Map<string, Buffer>();
  /** Trimmed chunks that are still in the file. Only of trims that are committed. */
  readonly #leftovers: Leftover[] = [];
  #now: number;

  constructor({ path, windowMilliseconds, now }: EventWriterOptions) {
    const database = new DatabaseSync(path, { timeout: busyTimeoutMilliseconds });
    database.exec(`
      pragma page_size = ${pageBytes};
      pragma journal_mode = wal;
      pragma synchronous = full;
      pragma temp_store = memory;
      pragma cache_size = -${cacheKibibytes};
      pragma wal_autocheckpoint = ${checkpointPages};
      pragma journal_size_limit = ${walKeptBytes};
    `);
    prepareSchema(database);
    // A process that died between writing and syncing leaves records that only the system's memory holds.
    // They are found again here, and must be on the disk before anybody is told that they are duplicates.
    database.exec('pragma wal_checkpoint(truncate)');
    this.#database = database;
    this.#now = now;
    this.#begin = database.prepare('begin immediate');
    this.#commit = database.prepare('commit');
    this.#insertChunk = database.prepare(
      `insert into chunks (topic, partition, last_offset, count, accepted_through, records)
        values (?, ?, ?, ?, ?, ?)`,
    );
    this.#markTrimmed = database.prepare(
      `insert into partitions (topic, partition, trimmed_through) values (?, ?, ?)
        on conflict do update set trimmed_through = excluded.trimmed_through`,
    );
    this.#deleteChunks = database.prepare(
      `delete from chunks where topic = ?1 and partition = ?2 and last_offset in (
        select last_offset from chunks where topic = ?1 and partition = ?2 and last_offset <= ?3
          order by last_offset limit ${chunksDeletedAtOnce})`,
    );
    this.#partitions = new Partitions(database);
    this.#seen = new SeenIds(database, { windowMilliseconds });
  }

  /** Appends all batches with one sync. */
  append(batches: readonly EncodedBatch[], now: number): Placed[] {
    this.#now = now;
    return this.#transaction(() => {
      this.#seen.turnTo(now);
      const placed = batches.map((batch) => this.#place(batch));
      for (const partition of this.#touched) this.#store(partition);
      this.#seen.store();
      return placed;
    });
  }

  /** Makes records invisible for good; what they take on the disk is freed in steps of `tidy`. */
  trim(trims: readonly Trim[]): void {
    const trimmed = this.#transaction(() => trims.flatMap((trim) => this.#mark(trim)));
    this.#leftovers.push(...trimmed);
  }

  tellTime(now: number): void {
    this.#now = now;
  }

  isTidy(): boolean {
    return this.#leftovers.length === 0 && this.#seen.isTidy(this.#now);
  }

  /** Frees some of what is no longer needed, little enough that appends hardly wait for it. */
  tidy(): void {
    const done = this.#transaction(() => {
      this.#seen.tidy(this.#now);
      let left = chunksDeletedAtOnce;
      let index = 0;
      for (; left > 0; index += 1) {
        const next = this.#leftovers[index];
        if (next === undefined) break;
        const { changes } = this.#deleteChunks.run(next.topic, next.partition, next.through);
        if (changes === chunksDeletedAtOnce) break;
        // Looking costs something as well.
        left -= Math.max(1, Number(changes));
      }
      return index;
    });
    this.#leftovers.splice(0, done);
  }

  close(): void {
    this.#database.close();
  }

  #transaction<T>(work: () => T): T {
    try {
      this.#begin.run();
      const result = work();
      this.#commit.run();
      this.#seen.committed();
      return result;
    } catch (error) {
      this.#partitions.forget();
      this.#seen.rolledBack();
      // Some faults, a full disk among them, have already rolled it back.
      if (this.#database.isTransaction) this.#database.exec('rollback');
      throw error;
    } finally {
      this.#touched = [];
      this.#attributes.clear();
      this.#partitions.relax();
      this.#packer.relax();
    }
  }

  /** Gives each entry its offset, unless it is a duplicate, and puts it to the others of its partition. */
  #place(batch: EncodedBatch): Placed {
    const bytes = Buffer.from(batch.buffer);
    const view = new DataView(batch.buffer);
    const attributes = batch.attributes.map((text) => this.#attributesOf(text));
    const topics = [];
    for (let index = 0; index < batch.topics.length; index += 2) {
      topics.push(this.#partitions.topic(batch.topics[index] ?? '', batch.topics[index + 1] ?? '', true));
    }
    const offsets = new Float64Array(batch.count);
    const partitions = topics.map(() => 0);
    let position = 0;
    for (let index = 0; index < batch.count; index += 1) {
      const prefix = position;
      const start = prefix + prefixBytes;
      const end = recordEnd(view, start);
      position = end;
      const number = view.getUint32(prefix, true);
      const topic = topics[number];
      const encoded = attributes[view.getUint32(prefix + attributesInPrefix, true)];
      if (topic === undefined || encoded === undefined) throw new Error('A batch does not hold together');
      if (view.getUint8(prefix + deduplicateInPrefix) === 1) {
        if (!this.#seen.add(topic.id, bytes, idStart(view, start), bodyStart(view, start))) continue;
      }
      const partitionNumber = view.getUint8(prefix + partitionInPrefix);
      const partition = this.#partitions.partition(topic, partitionNumber);
      if (partition.waiting.length === 0) this.#touched.push(partition);
      partition.waiting.push({ bytes, view, start, end, attributes: encoded });
      partition.last += 1;
      offsets[index] = partition.last;
      partitions[number] = (partitions[number] ?? 0) | (1 << partitionNumber);
    }
    return { offsets, partitions };
  }

  #store(partition: Partition): void {
    const { waiting } = partition;
    for (let from = 0; from < waiting.length; ) {
      const chunk = this.#packer.pack(waiting, from);
      from += chunk.count;
      partition.stored += chunk.count;
      partition.acceptedThrough = Math.max(partition.acceptedThrough, chunk.acceptedThrough);
      this.#insertChunk.run(
        partition.topic,
        partition.partition,
        partition.stored,
        chunk.count,
        partition.acceptedThrough,
        chunk.bytes,
      );
    }
    waiting.length = 0;
  }

  #mark({ address, through }: Trim): Leftover[] {
    const topic = this.#partitions.topic(address.organizationId, address.topicName, false);
    if (topic === undefined) return [];
    const partition = this.#partitions.partition(topic, address.partition);
    // Never past the end, or records that are yet to come would be gone before they are there.
    const target = Math.min(Math.floor(through), partition.last);
    if (!(target > partition.trimmedThrough)) return [];
    this.#markTrimmed.run(partition.topic, partition.partition, target);
    partition.trimmedThrough = target;
    return [{ topic: partition.topic, partition: partition.partition, through: target }];
  }

  #attributesOf(text: string): Buffer {
    const known = this.#attributes.get(text);
    if (known !== undefined) return known;
    const encoded = Buffer.from(text);
    this.#attributes.set(text, encoded);
    return encoded;
  }
}
