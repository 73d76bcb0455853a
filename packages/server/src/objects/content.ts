import { addAbortSignal, Readable } from 'node:stream';
import { LengthMismatchError, type ObjectContent, type PutOptions } from './objects.ts';

/**
 * The bytes of a body, one chunk after another, held to the length that was declared: one byte too many
 * ends the reading at once, and one too few is noticed before the writer makes anything visible.
 *
 * The body belongs to the store from this call on: it heeds the signal, a failure of it surfaces where it
 * is read and nowhere else, even when it comes before the first read, and what is not read is destroyed.
 */
export function contentChunks(body: ObjectContent, options: PutOptions): AsyncIterable<Uint8Array> {
  if (body instanceof Readable) {
    body.on('error', () => {});
    if (options.signal !== undefined) addAbortSignal(options.signal, body);
  }
  return measured(body, options);
}

async function* measured(
  body: ObjectContent,
  { contentLength }: PutOptions,
): AsyncGenerator<Uint8Array, void, undefined> {
  let received = 0;
  for await (const chunk of body instanceof Readable ? body : [body]) {
    const bytes = asBytes(chunk);
    received += bytes.byteLength;
    if (contentLength !== undefined && received > contentLength) {
      throw new LengthMismatchError(`More than the declared ${contentLength} bytes arrived.`);
    }
    if (bytes.byteLength > 0) yield bytes;
  }
  if (contentLength !== undefined && received !== contentLength) {
    throw new LengthMismatchError(`${received} of the declared ${contentLength} bytes arrived.`);
  }
}

function asBytes(chunk: unknown): Uint8Array {
  if (chunk instanceof Uint8Array) return chunk;
  if (typeof chunk === 'string') return Buffer.from(chunk);
  throw new TypeError('An object body gives bytes.');
}
