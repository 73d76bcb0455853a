import { closeSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';

const hourMilliseconds = 3_600_000;
const bufferBytes = 256 << 10;

/** Scratch files open at a time; a long backlog may be of thousands of hours. */
const openLimit = 32;

/** Lines of one hour of acceptance that become one file, and figures of them. */
export interface Segment {
  /** The beginning of the hour, in milliseconds since the epoch. */
  readonly hour: number;
  readonly path: string;
  bytes: number;
  rows: number;
  rescued: number;
  longestLine: number;
  minIngestedAt: number;
  maxIngestedAt: number;
}

interface OpenFile {
  readonly descriptor: number;
  readonly buffer: Buffer;
  filled: number;
}

/** Lines on their way into files, apart by the hour they were accepted in. They need not survive a crash. */
export class Spool {
  readonly #directory: string;
  readonly #segments = new Map<number, Segment>();
  /** In the order in which they were opened, which is that of the map. */
  readonly #open = new Map<Segment, OpenFile>();
  #last: Segment | undefined;
  #count = 0;

  constructor(directory: string) {
    this.#directory = directory;
    mkdirSync(directory, { recursive: true });
  }

  /** Where the lines of a time go. */
  segmentOf(acceptedAt: number): Segment {
    const hour = Math.floor(acceptedAt / hourMilliseconds) * hourMilliseconds;
    if (this.#last?.hour === hour) return this.#last;
    let segment = this.#segments.get(hour);
    if (segment === undefined) {
      segment = {
        hour,
        path: join(this.#directory, `${hour}-${this.#count++}.jsonl`),
        bytes: 0,
        rows: 0,
        rescued: 0,
        longestLine: 0,
        minIngestedAt: Number.POSITIVE_INFINITY,
        maxIngestedAt: Number.NEGATIVE_INFINITY,
      };
      this.#segments.set(hour, segment);
    }
    this.#last = segment;
    return segment;
  }

  /** Ends segments that are this large; what comes later of their hours goes to new ones. */
  cut(bytes: number): Segment[] {
    const large = [...this.#segments.values()].filter((segment) => segment.bytes >= bytes);
    for (const segment of large) this.#end(segment);
    return large;
  }

  append(segment: Segment, bytes: Buffer, start: number, end: number): void {
    const open = this.#opened(segment);
    segment.bytes += end - start;
    if (end - start > bufferBytes - open.filled) flush(open);
    if (end - start > bufferBytes) {
      writeAll(open.descriptor, bytes, start, end);
    } else {
      bytes.copy(open.buffer, open.filled, start, end);
      open.filled += end - start;
    }
  }

  /** Ends the writing; the segments that were not cut, in order of their hours. */
  finish(): Segment[] {
    const rest = [...this.#segments.values()].sort((one, other) => one.hour - other.hour);
    for (const segment of rest) this.#end(segment);
    return rest;
  }

  /** Lets go of the files. */
  discard(): void {
    for (const open of this.#open.values()) closeSync(open.descriptor);
    this.#open.clear();
    rmSync(this.#directory, { recursive: true, force: true });
  }

  #opened(segment: Segment): OpenFile {
    const known = this.#open.get(segment);
    if (known !== undefined) return known;
    if (this.#open.size >= openLimit) this.#shutOldest();
    const open = {
      descriptor: openSync(segment.path, 'a'),
      buffer: Buffer.allocUnsafeSlow(bufferBytes),
      filled: 0,
    };
    this.#open.set(segment, open);
    return open;
  }

  #end(segment: Segment): void {
    this.#shut(segment);
    this.#segments.delete(segment.hour);
    this.#last = undefined;
  }

  #shutOldest(): void {
    const [oldest] = this.#open.keys();
    if (oldest !== undefined) this.#shut(oldest);
  }

  #shut(segment: Segment): void {
    const open = this.#open.get(segment);
    if (open === undefined) return;
    this.#open.delete(segment);
    flush(open);
    closeSync(open.descriptor);
  }
}

function flush(open: OpenFile): void {
  writeAll(open.descriptor, open.buffer, 0, open.filled);
  open.filled = 0;
}

function writeAll(descriptor: number, bytes: Buffer, start: number, end: number): void {
  let at = start;
  while (at < end) at += writeSync(descriptor, bytes, at, end - at);
}
