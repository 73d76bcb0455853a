import type { AppendEntry, Routes } from '../events.ts';
import { attributesText } from './attributes.ts';
import { longestText, mostRecordBytes, writeRecord } from './record.ts';

/**
 * What the main thread hands to the thread that writes: all entries of a turn in one buffer, each a prefix
 * followed by its record as it will lie on disk. Topics and attributes are numbers in the lists beside it.
 *
 * ```
 * u32 topic | u32 attributes | u8 partition | u8 whether to deduplicate | record
 * ```
 */
export interface EncodedBatch {
  readonly buffer: ArrayBuffer;
  /** How many bytes of the buffer are used. */
  readonly length: number;
  readonly count: number;
  /** Organization id and topic name by turns. */
  readonly topics: readonly string[];
  readonly attributes: readonly string[];
}

export const prefixBytes = 10;
export const attributesInPrefix = 4;
export const partitionInPrefix = 8;
export const deduplicateInPrefix = 9;

/** The bytes the entries take at most. Throws when one could not be written. */
export function mostBatchBytes(entries: readonly AppendEntry[]): number {
  let bytes = 0;
  for (const entry of entries) {
    if (entry.key.length > longestText || entry.id.length > longestText) {
      throw new RangeError(`The key and the id of a message have at most ${longestText} characters`);
    }
    bytes += prefixBytes + mostRecordBytes(entry);
  }
  return bytes;
}

/** Gathers entries until they are sent. */
export class Batch {
  #bytes: Buffer<ArrayBuffer>;
  #view: DataView;
  #length = 0;
  #count = 0;
  readonly #topics: string[] = [];
  readonly #topicNumbers = new Map<string, Map<string, number>>();
  #organizationId = '';
  #topicName = '';
  #topic = -1;
  readonly #attributes: string[] = [];
  readonly #attributeNumbers = new Map<string, number>();
  #mediaType = '';
  #routes: Routes | undefined;
  #attributesNumber = -1;

  constructor(buffer: ArrayBuffer) {
    this.#bytes = Buffer.from(buffer);
    this.#view = new DataView(buffer);
  }

  get length(): number {
    return this.#length;
  }

  get count(): number {
    return this.#count;
  }

  /** Adds entries that take at most so many bytes. */
  add(entries: readonly AppendEntry[], mostBytes: number): void {
    this.#reserve(mostBytes);
    const view = this.#view;
    const bytes = this.#bytes;
    let position = this.#length;
    for (const entry of entries) {
      view.setUint32(position, this.#topicOf(entry), true);
      view.setUint32(position + attributesInPrefix, this.#attributesOf(entry), true);
      view.setUint8(position + partitionInPrefix, entry.partition);
      view.setUint8(position + deduplicateInPrefix, entry.deduplicate ? 1 : 0);
      position = writeRecord(bytes, view, position + prefixBytes, entry);
    }
    this.#length = position;
    this.#count += entries.length;
  }

  encoded(): EncodedBatch {
    return {
      buffer: this.#bytes.buffer,
      length: this.#length,
      count: this.#count,
      topics: this.#topics,
      attributes: this.#attributes,
    };
  }

  #reserve(bytes: number): void {
    const needed = this.#length + bytes;
    if (needed <= this.#bytes.length) return;
    const buffer = new ArrayBuffer(Math.max(needed, 2 * this.#bytes.length));
    const larger = Buffer.from(buffer);
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
    this.#view = new DataView(buffer);
  }

  /** Neighbours are mostly of one topic, so the last one is asked first. */
  #topicOf({ organizationId, topicName }: AppendEntry): number {
    if (topicName === this.#topicName && organizationId === this.#organizationId && this.#topic >= 0) {
      return this.#topic;
    }
    let numbers = this.#topicNumbers.get(organizationId);
    if (numbers === undefined) {
      numbers = new Map();
      this.#topicNumbers.set(organizationId, numbers);
    }
    let number = numbers.get(topicName);
    if (number === undefined) {
      number = this.#topics.push(organizationId, topicName) / 2 - 1;
      numbers.set(topicName, number);
    }
    this.#organizationId = organizationId;
    this.#topicName = topicName;
    this.#topic = number;
    return number;
  }

  #attributesOf({ mediaType, routes }: AppendEntry): number {
    if (routes === this.#routes && mediaType === this.#mediaType) return this.#attributesNumber;
    const text = attributesText(mediaType, routes);
    let number = this.#attributeNumbers.get(text);
    if (number === undefined) {
      number = this.#attributes.push(text) - 1;
      this.#attributeNumbers.set(text, number);
    }
    this.#mediaType = mediaType;
    this.#routes = routes;
    this.#attributesNumber = number;
    return number;
  }
}
