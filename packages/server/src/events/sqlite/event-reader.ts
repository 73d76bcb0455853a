import { DatabaseSync, type StatementSync } from 'node:sqlite';
import {
  type PartitionAddress,
  type PartitionBounds,
  partitionCount,
  type ReadLimits,
  type TopicAddress,
} from '../events.ts';
import { openChunk, skipRecords } from './chunk.ts';
import type { EncodedRecords } from './protocol.ts';
import { attributesOf, bodyLength, recordEnd, setAttributes } from './record.ts';

const busyTimeoutMilliseconds = 5_000;
/** What the number of a record's attributes can tell apart. */
const mostAttributes = 0x10000;

type Row = ReturnType<StatementSync['get']>;

/** The connection that reads. It sees every commit that was acknowledged and waits for none. */
export class EventReader {
  readonly #database: DatabaseSync;
  readonly #findTopic: StatementSync;
  readonly #chunksAfter: StatementSync;
  readonly #lastChunk: StatementSync;
  readonly #trimmed: StatementSync;
  readonly #chunkFrom: StatementSync;
  readonly #topics: StatementSync;
  readonly #topicsOf: StatementSync;

  constructor(path: string) {
    const database = new DatabaseSync(path, { readOnly: true, timeout: busyTimeoutMilliseconds });
    database.exec('pragma temp_store = memory');
    this.#database = database;
    this.#findTopic = database.prepare('select id from topics where organization_id = ? and topic_name = ?');
    // One statement sees one state of the file, so that a trim in between cannot show.
    this.#chunksAfter = database.prepare(
      `select last_offset, count, records, trimmed_through
        from chunks left join partitions using (topic, partition)
        where topic = ?1 and partition = ?2 and last_offset > max(?3, coalesce(
          (select trimmed_through from partitions where topic = ?1 and partition = ?2), 0))
        order by last_offset`,
    );
    this.#lastChunk = database.prepare(
      'select last_offset from chunks where topic = ? and partition = ? order by last_offset desc limit 1',
    );
    this.#trimmed = database.prepare(
      'select trimmed_through from partitions where topic = ? and partition = ?',
    );
    this.#chunkFrom = database.prepare(
      `select last_offset, accepted_through from chunks
        where topic = ? and partition = ? and last_offset >= ? order by last_offset limit 1`,
    );
    this.#topics = database.prepare('select organization_id, topic_name from topics');
    this.#topicsOf = database.prepare(
      'select organization_id, topic_name from topics where organization_id = ?',
    );
  }

  read(address: PartitionAddress, after: number, limits: ReadLimits): EncodedRecords {
    const gathered = new GatheredRecords(limits);
    const topic = this.#topicOf(address);
    if (topic !== undefined) {
      for (const row of this.#chunksAfter.iterate(topic, address.partition, after)) {
        const from = Math.max(after, numberIn(row, 'trimmed_through')) + 1;
        gathered.add(row, from);
        if (gathered.isFull()) break;
      }
    }
    return gathered.encoded();
  }

  bounds(address: TopicAddress): PartitionBounds[] {
    const topic = this.#topicOf(address);
    if (topic === undefined) return [];
    return this.#snapshot(() => {
      const bounds: PartitionBounds[] = [];
      for (let partition = 0; partition < partitionCount; partition += 1) {
        const trimmedThrough = numberIn(this.#trimmed.get(topic, partition), 'trimmed_through');
        const last = Math.max(trimmedThrough, numberIn(this.#lastChunk.get(topic, partition), 'last_offset'));
        if (last > 0) bounds.push({ partition, trimmedThrough, last });
      }
      return bounds;
    });
  }

  topics(organizationId: string | undefined): TopicAddress[] {
    const rows = organizationId === undefined ? this.#topics.all() : this.#topicsOf.all(organizationId);
    return rows.map((row) => ({
      organizationId: String(row.organization_id),
      topicName: String(row.topic_name),
    }));
  }

  /** Searches by halves, since what chunks were accepted through never falls. */
  offsetAt(address: PartitionAddress, acceptedAt: number): number {
    const topic = this.#topicOf(address);
    if (topic === undefined) return 0;
    const { partition } = address;
    return this.#snapshot(() => {
      let found = 0;
      let from = numberIn(this.#trimmed.get(topic, partition), 'trimmed_through') + 1;
      let to = numberIn(this.#lastChunk.get(topic, partition), 'last_offset');
      while (from <= to) {
        const middle = Math.floor((from + to) / 2);
        const chunk = this.#chunkFrom.get(topic, partition, middle);
        if (numberIn(chunk, 'accepted_through') <= acceptedAt) {
          found = numberIn(chunk, 'last_offset');
          from = found + 1;
        } else {
          to = middle - 1;
        }
      }
      return found;
    });
  }

  check(): void {
    this.#topicOf({ organizationId: '', topicName: '' });
  }

  close(): void {
    this.#database.close();
  }

  #topicOf({ organizationId, topicName }: TopicAddress): number | undefined {
    const row = this.#findTopic.get(organizationId, topicName);
    return row === undefined ? undefined : numberIn(row, 'id');
  }

  #snapshot<T>(work: () => T): T {
    this.#database.exec('begin');
    try {
      return work();
    } finally {
      this.#database.exec('commit');
    }
  }
}

/** Puts the records of neighbouring chunks together until the limits are reached. */
class GatheredRecords {
  readonly #limits: ReadLimits;
  readonly #pieces: Buffer[] = [];
  readonly #attributes = new Map<string, number>();
  #firstOffset = 0;
  #count = 0;
  #bodyBytes = 0;
  #isCutShort = false;

  constructor(limits: ReadLimits) {
    this.#limits = limits;
  }

  isFull(): boolean {
    return this.#isCutShort || this.#count >= this.#limits.records || this.#bodyBytes >= this.#limits.bytes;
  }

  /** Adds what fits of a chunk, from an offset on. */
  add(row: Row, from: number): void {
    const stored = row?.records;
    if (!(stored instanceof Uint8Array)) throw new Error('A chunk of the event log has no records');
    const { bytes, view, attributes, start } = openChunk(stored);
    if (this.#count > 0 && this.#attributes.size + attributes.length > mostAttributes) {
      this.#isCutShort = true;
      return;
    }
    const last = numberIn(row, 'last_offset');
    const first = Math.max(from, last - numberIn(row, 'count') + 1);
    if (this.#count === 0) this.#firstOffset = first;
    else if (first !== this.#firstOffset + this.#count) throw new Error('The event log has a gap');
    const numbers = attributes.map((text) => this.#numberOf(text));
    const skipped = numberIn(row, 'count') - (last - first + 1);
    const pieceStart = skipRecords(view, start, skipped);
    let position = pieceStart;
    for (let left = last - first + 1; left > 0 && (this.#count === 0 || !this.isFull()); left -= 1) {
      setAttributes(view, position, numbers[attributesOf(view, position)] ?? 0);
      this.#bodyBytes += bodyLength(view, position);
      this.#count += 1;
      position = recordEnd(view, position);
    }
    this.#pieces.push(bytes.subarray(pieceStart, position));
  }

  encoded(): EncodedRecords {
    let length = 0;
    for (const piece of this.#pieces) length += piece.length;
    const bytes = new Uint8Array(length);
    let position = 0;
    for (const piece of this.#pieces) {
      bytes.set(piece, position);
      position += piece.length;
    }
    return {
      firstOffset: this.#firstOffset,
      count: this.#count,
      attributes: [...this.#attributes.keys()],
      bytes,
    };
  }

  #numberOf(attributes: string): number {
    const known = this.#attributes.get(attributes);
    if (known !== undefined) return known;
    const number = this.#attributes.size;
    this.#attributes.set(attributes, number);
    return number;
  }
}

/** A number of a row, 0 when there is no row or nothing in it. */
function numberIn(row: Row, column: string): number {
  return Number(row?.[column] ?? 0);
}
