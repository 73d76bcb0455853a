import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { CommandError } from './command.ts';

export type RecordFormat = 'ndjson' | 'csv';

/** Where records come from: a file, or stdin. */
export interface RecordSource {
  readonly format: RecordFormat;
  readonly stream: Readable;
  /** Bytes read so far, as they are in the file. */
  bytes(): number;
}

export function openRecords(file: string | undefined, format: RecordFormat | undefined): RecordSource {
  const input: Readable = file === undefined || file === '-' ? process.stdin : createReadStream(file);
  let bytes = 0;
  input.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
  });
  input.pause();
  const compressed = file?.endsWith('.gz') === true;
  const stream = compressed ? input.pipe(createGunzip()) : input;
  if (compressed) input.on('error', (error) => stream.destroy(error));
  const named = file?.replace(/\.gz$/, '').endsWith('.csv') === true ? 'csv' : 'ndjson';
  return { format: format ?? named, stream, bytes: () => bytes };
}

/** The records of a source as lines of JSON. */
export function recordLines(source: RecordSource): AsyncIterable<string> {
  return source.format === 'csv' ? csvLines(source.stream) : jsonLines(source.stream);
}

async function* jsonLines(stream: Readable): AsyncGenerator<string> {
  for await (const line of createInterface({ input: stream, crlfDelay: Number.POSITIVE_INFINITY }))
    if (line.trim() !== '') yield line;
}

/** Rows under a first row of names. Numbers, true and false become values of JSON; what is empty is left out. */
async function* csvLines(stream: Readable): AsyncGenerator<string> {
  let names: string[] | undefined;
  let number = 0;
  for await (const row of csvRows(stream)) {
    number += 1;
    if (names === undefined) {
      names = row.map((name) => name.replace(/^\ufeff/, '').trim());
      continue;
    }
    if (row.length === 1 && row[0] === '') continue;
    if (row.length > names.length)
      throw new CommandError(`Row ${number} has ${row.length} fields, and there are ${names.length} names.`);
    const fields = names.flatMap((name, index) => {
      const text = row[index] ?? '';
      return text === '' ? [] : [[name, jsonValueOf(text)]];
    });
    yield JSON.stringify(Object.fromEntries(fields));
  }
}

function jsonValueOf(text: string): unknown {
  if (text === 'true' || text === 'false') return text === 'true';
  // Numbers that would not come back as they are, such as 007, stay texts.
  const number = Number(text);
  return /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(text) && (String(number) === text || /[.eE]/.test(text))
    ? number
    : text;
}

/** The fields of each row, with quotes and line breaks inside them as RFC 4180 has it. */
async function* csvRows(stream: Readable): AsyncGenerator<string[]> {
  let row: string[] = [];
  let field = '';
  let quoted = false;
  let closed = false;
  for await (const chunk of stream.setEncoding('utf8')) {
    for (const character of String(chunk)) {
      if (quoted) {
        if (character === '"') {
          quoted = false;
          closed = true;
        } else field += character;
        continue;
      }
      if (character === '"' && closed) {
        field += '"';
        quoted = true;
        closed = false;
        continue;
      }
      closed = false;
      if (character === '"' && field === '') quoted = true;
      else if (character === ',') {
        row.push(field);
        field = '';
      } else if (character === '\n') {
        row.push(field.replace(/\r$/, ''));
        yield row;
        row = [];
        field = '';
      } else field += character;
    }
  }
  if (quoted) throw new CommandError('The CSV ends inside a quoted field.');
  if (field !== '' || row.length > 0) yield [...row, field.replace(/\r$/, '')];
}
