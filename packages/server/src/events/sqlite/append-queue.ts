import { type AppendEntry, type AppendLimits, type AppendOutcome, EventLogFullError } from '../events.ts';
import { Batch, type EncodedBatch, mostBatchBytes } from './batch.ts';
import type { Appended } from './protocol.ts';

interface Call {
  readonly count: number;
  readonly bytes: number;
  resolve(outcomes: AppendOutcome[]): void;
  reject(error: Error): void;
}

/** A batch that was sent and the calls whose entries are in it. */
export interface SentBatch {
  readonly topics: readonly string[];
  readonly calls: readonly Call[];
}

const newBufferBytes = 64 * 1024;
/** A batch of this size does not wait for those before it. */
const fullBatchBytes = 1024 * 1024;
const keptBuffers = 4;
const keptBufferBytes = 2 * fullBatchBytes;

/**
 * The main thread's end of appending. Calls are encoded into one batch as they come. It is sent at the end of
 * the turn of the event loop when nothing is under way, and otherwise as soon as what was sent before is
 * durable: waking the other thread costs as much as a good part of a request, so it is done once for as many
 * calls as there are, and a commit is as large as the load makes it. Only a batch that is full does not wait.
 */
export class AppendQueue {
  readonly #limits: AppendLimits;
  readonly #send: (batch: EncodedBatch) => void;
  readonly #sent: SentBatch[] = [];
  #batch: Batch | undefined;
  #calls: Call[] = [];
  #scheduled = false;
  #entries = 0;
  #bytes = 0;
  readonly #buffers: ArrayBuffer[] = [];
  #whenEmpty: (() => void)[] = [];

  constructor(limits: AppendLimits, send: (batch: EncodedBatch) => void) {
    this.#limits = limits;
    this.#send = send;
  }

  append(entries: readonly AppendEntry[]): Promise<AppendOutcome[]> {
    return new Promise((resolve, reject) => {
      const bytes = mostBatchBytes(entries);
      const count = entries.length;
      // What is larger than the limit on its own is let in when nothing else waits, or it never would be.
      const isOver = this.#entries + count > this.#limits.entries || this.#bytes + bytes > this.#limits.bytes;
      if (isOver && this.#entries > 0) {
        throw new EventLogFullError('More is waiting to be written than may');
      }
      this.#batch ??= new Batch(this.#buffers.pop() ?? new ArrayBuffer(newBufferBytes));
      this.#batch.add(entries, bytes);
      this.#entries += count;
      this.#bytes += bytes;
      this.#calls.push({ count, bytes, resolve, reject });
      if (this.#batch.length >= fullBatchBytes) this.#flush();
      else if (this.#sent.length === 0) this.#schedule();
    });
  }

  /** The oldest batch is durable. */
  settle({ offsets, buffer }: Appended): SentBatch | undefined {
    if (this.#buffers.length < keptBuffers && buffer.byteLength <= keptBufferBytes) {
      this.#buffers.push(buffer);
    }
    const sent = this.#takeSent();
    let position = 0;
    for (const call of sent?.calls ?? []) {
      const outcomes: AppendOutcome[] = [];
      for (const end = position + call.count; position < end; position += 1) {
        const offset = offsets[position] ?? 0;
        outcomes.push(offset === 0 ? duplicate : { duplicate: false, offset });
      }
      this.#release(call);
      call.resolve(outcomes);
    }
    this.#tellWhenEmpty();
    return sent;
  }

  /** The oldest batch was not written. */
  refuse(error: Error): void {
    for (const call of this.#takeSent()?.calls ?? []) {
      this.#release(call);
      call.reject(error);
    }
    this.#tellWhenEmpty();
  }

  /** Nothing will be written any more. */
  refuseAll(error: Error): void {
    this.#batch = undefined;
    this.#sent.push({ topics: [], calls: this.#calls });
    this.#calls = [];
    while (this.#sent.length > 0) this.refuse(error);
  }

  /** Resolves when nothing waits. */
  async drained(): Promise<void> {
    while (this.#entries > 0) await new Promise<void>((resolve) => this.#whenEmpty.push(resolve));
  }

  /** The oldest batch is over, and what came meanwhile may go. */
  #takeSent(): SentBatch | undefined {
    const sent = this.#sent.shift();
    if (this.#sent.length === 0) this.#flush();
    return sent;
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#flush();
    });
  }

  #flush(): void {
    if (this.#batch === undefined) return;
    const encoded = this.#batch.encoded();
    this.#sent.push({ topics: encoded.topics, calls: this.#calls });
    this.#batch = undefined;
    this.#calls = [];
    this.#send(encoded);
  }

  #release(call: Call): void {
    this.#entries -= call.count;
    this.#bytes -= call.bytes;
  }

  #tellWhenEmpty(): void {
    if (this.#entries === 0) for (const resolve of this.#whenEmpty.splice(0)) resolve();
  }
}

const duplicate: AppendOutcome = { duplicate: true };
