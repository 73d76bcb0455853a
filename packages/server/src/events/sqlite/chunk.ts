import { acceptedAt, recordEnd, setAttributes } from './record.ts';

/**
 * A chunk is what one commit stored for one partition: its records in the order of their offsets, after
 * the table of their attributes, little endian:
 *
 * ```
 * u8 version | u16 number of attributes | for each: u32 length, JSON text | records
 * ```
 */
export const chunkVersion = 1;
/** A chunk grows no further than this, unless one record alone does, so that reading a few stays cheap. */
export const chunkBytes = 256 * 1024;

const tableStart = 3;
const keptScratchBytes = 1024 * 1024;

/** A record that waits in a batch to become part of a chunk. */
export interface ChunkRecord {
  readonly bytes: Buffer;
  readonly view: DataView;
  readonly start: number;
  readonly end: number;
  /** Its attributes, encoded; the same object for the same ones. */
  readonly attributes: Buffer;
}

export interface Chunk {
  readonly count: number;
  /** When the latest of its records was accepted. */
  readonly acceptedThrough: number;
  /** Valid until the next chunk is made. */
  readonly bytes: Uint8Array;
}

/** Packs records into chunks, in memory that is used again for each. */
export class ChunkPacker {
  #scratch = Buffer.alloc(64 * 1024);
  #view = viewOf(this.#scratch);

  /** Packs as many of the records as fit a chunk, at least one, beginning with the one of that index. */
  pack(records: readonly ChunkRecord[], from: number): Chunk {
    const numbers = new Map<Buffer, number>();
    let tableEnd = tableStart;
    let recordBytes = 0;
    let to = from;
    for (let record = records[to]; record !== undefined; record = records[to]) {
      const size = record.end - record.start;
      if (to > from && tableEnd + recordBytes + size > chunkBytes) break;
      recordBytes += size;
      if (!numbers.has(record.attributes)) {
        numbers.set(record.attributes, numbers.size);
        tableEnd += 4 + record.attributes.length;
      }
      to += 1;
    }
    this.#reserve(tableEnd + recordBytes);
    this.#writeTable(numbers);
    let position = tableEnd;
    let acceptedThrough = Number.NEGATIVE_INFINITY;
    for (let index = from; index < to; index += 1) {
      const record = records[index];
      if (record === undefined) break;
      record.bytes.copy(this.#scratch, position, record.start, record.end);
      setAttributes(this.#view, position, numbers.get(record.attributes) ?? 0);
      acceptedThrough = Math.max(acceptedThrough, acceptedAt(record.view, record.start));
      position += record.end - record.start;
    }
    return { count: to - from, acceptedThrough, bytes: this.#scratch.subarray(0, position) };
  }

  /** Gives back memory that only something unusually large had needed. */
  relax(): void {
    if (this.#scratch.length > keptScratchBytes) this.#resize(keptScratchBytes);
  }

  #writeTable(numbers: ReadonlyMap<Buffer, number>): void {
    this.#view.setUint8(0, chunkVersion);
    this.#view.setUint16(1, numbers.size, true);
    let position = tableStart;
    for (const attributes of numbers.keys()) {
      this.#view.setUint32(position, attributes.length, true);
      attributes.copy(this.#scratch, position + 4);
      position += 4 + attributes.length;
    }
  }

  #reserve(bytes: number): void {
    if (bytes > this.#scratch.length) this.#resize(Math.max(bytes, 2 * this.#scratch.length));
  }

  #resize(bytes: number): void {
    this.#scratch = Buffer.alloc(bytes);
    this.#view = viewOf(this.#scratch);
  }
}

export interface OpenedChunk {
  readonly bytes: Buffer;
  readonly view: DataView;
  readonly attributes: readonly string[];
  /** Where the first record begins. */
  readonly start: number;
}

export function openChunk(stored: Uint8Array): OpenedChunk {
  const bytes = Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength);
  const view = viewOf(bytes);
  const version = view.getUint8(0);
  if (version !== chunkVersion)
    throw new Error(`The event log has a chunk of the unknown version ${version}`);
  const attributes: string[] = [];
  let position = tableStart;
  for (let left = view.getUint16(1, true); left > 0; left -= 1) {
    const end = position + 4 + view.getUint32(position, true);
    attributes.push(bytes.toString('utf8', position + 4, end));
    position = end;
  }
  return { bytes, view, attributes, start: position };
}

/** Where the record is that comes so many after another. */
export function skipRecords(view: DataView, start: number, count: number): number {
  let position = start;
  for (let left = count; left > 0; left -= 1) position = recordEnd(view, position);
  return position;
}

function viewOf(bytes: Buffer): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
