import type { Clock } from '../../platform/clock.ts';
import { storeLine } from './stored-line.ts';
import type { LogLine } from './task-log.ts';

export interface PendingBounds {
  /** Lines and bytes of one task that may wait to be kept. */
  readonly pendingLines: number;
  readonly pendingBytes: number;
  /** Bytes of all tasks that may wait to be kept. */
  readonly allPendingBytes: number;
  /** Characters of one line; a longer one is cut. */
  readonly lineCharacters: number;
}

/** Some lines of a task that follow each other, as they are kept. */
export interface Chunk {
  readonly lines: number;
  readonly bytes: number;
  readonly newestTime: number;
  /** A JSON array of lines. */
  readonly content: string;
}

/** The lines of a task that wait to be kept at some moment. */
export interface Batch {
  readonly organizationId: string;
  readonly taskId: string;
  readonly lines: number;
  readonly chunks: readonly Chunk[];
}

interface Pending {
  readonly organizationId: string;
  readonly taskId: string;
  readonly lines: { readonly stored: string; readonly bytes: number; readonly time: number }[];
  bytes: number;
  dropped: number;
  version: string;
}

const chunkLines = 256;
const chunkBytes = 64 * 1024;

/**
 * Lines that wait to be kept. They stay here until they are, so a failed attempt loses none, and the bounds
 * hold for what is on its way as well. Because lines are kept at fixed times, the bounds are also the rate
 * at which a task can write without losing lines.
 */
export class PendingLogs {
  readonly #bounds: PendingBounds;
  readonly #clock: Clock;
  readonly #tasks = new Map<string, Pending>();
  #bytes = 0;

  constructor(bounds: PendingBounds, clock: Clock) {
    this.#bounds = bounds;
    this.#clock = clock;
  }

  get isEmpty(): boolean {
    return this.#tasks.size === 0;
  }

  add(organizationId: string, taskId: string, line: LogLine): void {
    const key = keyOf(organizationId, taskId);
    let pending = this.#tasks.get(key);
    if (pending === undefined) {
      pending = { organizationId, taskId, lines: [], bytes: 0, dropped: 0, version: line.version };
      this.#tasks.set(key, pending);
    }
    pending.version = line.version;
    // Once lines were dropped nothing is taken until some were kept, so that there is one gap and not many.
    if (pending.dropped > 0 || !this.#push(pending, cut(line, this.#bounds.lineCharacters))) {
      pending.dropped += 1;
    }
  }

  /** What waits now, of every task. */
  batches(): Batch[] {
    return this.#tasks
      .values()
      .filter(({ lines }) => lines.length > 0)
      .map(({ organizationId, taskId, lines }) => ({
        organizationId,
        taskId,
        lines: lines.length,
        chunks: chunksOf(lines),
      }))
      .toArray();
  }

  /** The lines of a batch were kept, so there is room again. */
  settle({ organizationId, taskId, lines }: Batch): void {
    const key = keyOf(organizationId, taskId);
    const pending = this.#tasks.get(key);
    if (pending === undefined) return;
    for (const { bytes } of pending.lines.splice(0, lines)) this.#count(pending, -bytes);
    if (pending.dropped > 0 && this.#push(pending, this.#gap(pending))) pending.dropped = 0;
    if (pending.lines.length === 0 && pending.dropped === 0) this.#tasks.delete(key);
  }

  /** Throws away what waits of a task. */
  forget(organizationId: string, taskId: string): void {
    const key = keyOf(organizationId, taskId);
    const pending = this.#tasks.get(key);
    if (pending === undefined) return;
    this.#bytes -= pending.bytes;
    this.#tasks.delete(key);
  }

  /** How many lines wait. */
  count(): number {
    return this.#tasks.values().reduce((sum, { lines, dropped }) => sum + lines.length + dropped, 0);
  }

  #push(pending: Pending, line: LogLine): boolean {
    const { pendingLines, pendingBytes, allPendingBytes } = this.#bounds;
    const stored = storeLine(line);
    const bytes = Buffer.byteLength(stored);
    const hasRoom =
      pending.lines.length < pendingLines &&
      pending.bytes + bytes <= pendingBytes &&
      this.#bytes + bytes <= allPendingBytes;
    if (!hasRoom) return false;
    pending.lines.push({ stored, bytes, time: line.time });
    this.#count(pending, bytes);
    return true;
  }

  #count(pending: Pending, bytes: number): void {
    pending.bytes += bytes;
    this.#bytes += bytes;
  }

  #gap({ dropped, version }: Pending): LogLine {
    const lines = dropped === 1 ? '1 line was' : `${dropped} lines were`;
    const text = `${lines} dropped here: they came faster than they can be kept.`;
    return { time: this.#clock.now(), version, requestId: '', stream: 'system', text };
  }
}

/** Neither id has a slash. */
export function keyOf(organizationId: string, taskId: string): string {
  return `${organizationId}/${taskId}`;
}

function cut(line: LogLine, most: number): LogLine {
  const { text } = line;
  if (text.length <= most) return line;
  const isPair = /[\ud800-\udbff]/.test(text.charAt(most - 1));
  const kept = text.slice(0, isPair ? most - 1 : most);
  return { ...line, text: `${kept}… (cut, ${text.length} characters)` };
}

function chunksOf(lines: Pending['lines']): Chunk[] {
  const chunks: Chunk[] = [];
  for (let start = 0; start < lines.length; ) {
    let end = start;
    let bytes = 0;
    let newestTime = 0;
    for (; end < lines.length && end - start < chunkLines; end += 1) {
      const line = lines[end];
      if (line === undefined || (end > start && bytes + line.bytes > chunkBytes)) break;
      bytes += line.bytes;
      newestTime = Math.max(newestTime, line.time);
    }
    const stored = lines.slice(start, end).map((line) => line.stored);
    chunks.push({ lines: end - start, bytes, newestTime, content: `[${stored.join(',')}]` });
    start = end;
  }
  return chunks;
}
