/**
 * What a Node process of a task and the service say to each other: frames of a length (4 bytes), a kind
 * (1 byte) and a body. One descriptor for each direction. The other side runs foreign code, so every
 * frame it sends is checked, and a wrong one ends it.
 */

/** The service to the process. */
export const toProcess = { start: 1, invoke: 2 } as const;

/** The process to the service. */
export const fromProcess = {
  ready: 16,
  answer: 17,
  error: 18,
  startError: 19,
  output: 20,
  fatal: 21,
} as const;

export interface Frame {
  readonly kind: number;
  readonly body: Buffer;
}

const headLength = 5;

export function encodeFrame(kind: number, ...parts: readonly Uint8Array[]): Buffer {
  const length = parts.reduce((sum, part) => sum + part.byteLength, 0);
  const frame = Buffer.allocUnsafe(headLength + length);
  frame.writeUInt32BE(length, 0);
  frame.writeUInt8(kind, 4);
  let at = headLength;
  for (const part of parts) {
    frame.set(part, at);
    at += part.byteLength;
  }
  return frame;
}

/** An invocation: its description as JSON, then the event as it is. */
export function encodeInvocation(description: object, event: Uint8Array): Buffer {
  const head = Buffer.from(JSON.stringify(description));
  const length = Buffer.allocUnsafe(2);
  length.writeUInt16BE(head.byteLength, 0);
  return encodeFrame(toProcess.invoke, length, head, event);
}

/** Cuts a stream of bytes into frames. `undefined` from `take` means that the stream is not ours. */
export class FrameReader {
  readonly #largest: number;
  #chunks: Buffer[] = [];
  #held = 0;
  #needed = headLength;

  constructor(largest: number) {
    this.#largest = largest;
  }

  take(chunk: Buffer): readonly Frame[] | undefined {
    this.#chunks.push(chunk);
    this.#held += chunk.byteLength;
    if (this.#held < this.#needed) return [];
    const bytes = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks);
    const frames: Frame[] = [];
    let at = 0;
    this.#needed = headLength;
    while (bytes.byteLength - at >= headLength) {
      const length = bytes.readUInt32BE(at);
      if (length > this.#largest) return undefined;
      if (bytes.byteLength - at < headLength + length) {
        this.#needed = headLength + length;
        break;
      }
      const body = bytes.subarray(at + headLength, at + headLength + length);
      frames.push({ kind: bytes.readUInt8(at + 4), body });
      at += headLength + length;
    }
    this.#chunks = at === bytes.byteLength ? [] : [bytes.subarray(at)];
    this.#held = bytes.byteLength - at;
    return frames;
  }
}
