import { createReadStream } from 'node:fs';
import { type Readable, Transform } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { CommandError } from './command.ts';
import { csvLines } from './csv.ts';

export type RecordFormat = 'ndjson' | 'csv';

export interface RecordOptions {
  readonly format?: RecordFormat | undefined;
  /** What is between the fields of CSV; a comma unless given. */
  readonly delimiter?: string | undefined;
  /** Whether every field of CSV stays a text. */
  readonly asText?: boolean | undefined;
  readonly signal: AbortSignal;
}

/** Where records come from: a file, or stdin. */
export interface RecordSource {
  /** The records as lines of JSON. */
  lines(): AsyncGenerator<string, void>;
  /** Bytes read so far, as they are in the file. */
  bytes(): number;
}

/** No line is longer: far more than the service takes as a message, and little enough to hold. */
export const mostLineBytes = 16 * 1024 * 1024;

export function openRecords(file: string | undefined, options: RecordOptions): RecordSource {
  const input: Readable = file === undefined || file === '-' ? process.stdin : createReadStream(file);
  let bytes = 0;
  const count = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      done(null, chunk);
    },
  });
  const compressed = file?.endsWith('.gz') === true;
  const stream = compressed ? createGunzip() : count;
  input.on('error', (error) => stream.destroy(error));
  if (compressed) count.on('error', (error) => stream.destroy(error)).pipe(stream);
  input.pipe(count);
  const name = file?.replace(/\.gz$/, '') ?? '';
  const format = options.format ?? (/\.(csv|tsv)$/.test(name) ? 'csv' : 'ndjson');
  const delimiter = options.delimiter ?? (name.endsWith('.tsv') ? '\t' : ',');
  return {
    bytes: () => bytes,
    async *lines() {
      const { signal, asText = false } = options;
      // What is read waits for nobody once it is over, not even for a terminal.
      const end = () => {
        input.destroy();
        stream.destroy(signal.reason);
      };
      signal.addEventListener('abort', end, { once: true });
      try {
        signal.throwIfAborted();
        const texts = textsOf(stream);
        yield* format === 'csv' ? csvLines(texts, { delimiter, asText }) : jsonLines(texts);
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof CommandError || !(error instanceof Error)) throw error;
        throw new CommandError(`${file ?? 'stdin'} cannot be read: ${error.message}`);
      } finally {
        signal.removeEventListener('abort', end);
        end();
      }
    },
  };
}

/** The bytes as text; bytes that are no UTF-8 are an error rather than question marks in somebody's data. */
export async function* textsOf(stream: AsyncIterable<Uint8Array>): AsyncGenerator<string, void> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const decode = (bytes?: Uint8Array) => {
    try {
      return bytes === undefined ? decoder.decode() : decoder.decode(bytes, { stream: true });
    } catch {
      throw new CommandError('What was read is not UTF-8.');
    }
  };
  for await (const chunk of stream) yield decode(chunk);
  yield decode();
}

export async function* jsonLines(texts: AsyncIterable<string>): AsyncGenerator<string, void> {
  let rest = '';
  for await (const text of texts) {
    const lines = text.split('\n');
    lines[0] = rest + lines[0];
    rest = lines.pop() ?? '';
    if (rest.length > mostLineBytes)
      throw new CommandError(`A line is longer than ${mostLineBytes} bytes: is it one JSON value a line?`);
    for (const line of lines) if (line.trim() !== '') yield line.replace(/\r$/, '');
  }
  if (rest.trim() !== '') yield rest;
}
