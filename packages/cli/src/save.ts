import { randomBytes } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { safeText } from './safe-text.ts';

/** Writes a stream to a file that is there when it is whole, and not at all otherwise. */
export async function saveTo(
  file: string,
  stream: ReadableStream<Uint8Array>,
  signal: AbortSignal,
): Promise<void> {
  const beside = `${file}.${randomBytes(4).toString('hex')}.part`;
  try {
    await pipeline(Readable.fromWeb(stream), createWriteStream(beside, { flags: 'wx' }), { signal });
    signal.throwIfAborted();
    await rename(beside, file);
  } catch (error) {
    await rm(beside, { force: true });
    throw error;
  }
}

/** Writes text to stdout: as it is for programs, and so that it only shows on a terminal. */
export async function printText(stream: ReadableStream<Uint8Array>, signal: AbortSignal): Promise<void> {
  const source = Readable.fromWeb(stream);
  if (process.stdout.isTTY !== true) return pipeline(source, process.stdout, { signal, end: false });
  const decoder = new TextDecoder();
  const safe = new Transform({
    transform(chunk: Uint8Array, _encoding, done) {
      done(null, safeText(decoder.decode(chunk, { stream: true }).replaceAll('\r\n', '\n')));
    },
  });
  return pipeline(source, safe, process.stdout, { signal, end: false });
}
