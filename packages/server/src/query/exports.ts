import type { ResultColumn } from './engine.ts';
import type { Row } from './stored-results.ts';

/** Text is given out in pieces of about this size: a piece for each row would cost more than the row. */
const pieceLength = 64 * 1024;

/** A result as CSV: RFC 4180, with names first. NULL is nothing, and an empty text is two quotes. */
export async function* csvOf(
  columns: readonly ResultColumn[],
  rows: AsyncIterable<Row>,
): AsyncGenerator<string> {
  async function* lines() {
    yield `${columns.map(({ name }) => csvValue(name)).join(',')}\r\n`;
    for await (const row of rows) yield `${row.map(csvValue).join(',')}\r\n`;
  }
  yield* inPieces(lines());
}

/** A result as a JSON array of objects, with numbers, booleans and nested values as such. */
export async function* jsonOf(
  columns: readonly ResultColumn[],
  rows: AsyncIterable<Row>,
): AsyncGenerator<string> {
  const names = columns.map(({ distinctName }) => JSON.stringify(distinctName));
  const writers = columns.map(({ type }) => jsonWriter(type));
  async function* parts() {
    let separator = '[\n';
    for await (const row of rows) {
      const fields = row.map((value, index) => `${names[index]}:${writers[index]?.(value) ?? 'null'}`);
      yield `${separator}{${fields.join(',')}}`;
      separator = ',\n';
    }
    yield separator === '[\n' ? '[]\n' : '\n]\n';
  }
  yield* inPieces(parts());
}

async function* inPieces(parts: AsyncIterable<string>): AsyncGenerator<string> {
  let piece = '';
  for await (const part of parts) {
    piece += part;
    if (piece.length < pieceLength) continue;
    yield piece;
    piece = '';
  }
  if (piece !== '') yield piece;
}

function csvValue(value: string | null): string {
  if (value === null) return '';
  return value === '' || /[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value;
}

const number = /^-?\d+(\.\d+)?(e[+-]?\d+)?$/i;

/** How values of a type are written. Whatever would not be JSON is told as text. */
function jsonWriter(type: string): (value: string | null) => string {
  const isNested = /[\])]$/.test(type) && !/^(?:decimal|enum)\(/.test(type);
  if (isNested || type === 'json' || type === 'variant')
    return (value) => (value === null ? 'null' : asJson(value));
  if (type === 'boolean') return (value) => value ?? 'null';
  if (/^(?:u?(?:tiny|small|big|huge)int|u?integer|float|double|decimal\(.*|bignum)$/.test(type)) {
    return (value) => (value === null ? 'null' : number.test(value) ? value : JSON.stringify(value));
  }
  return (value) => JSON.stringify(value);
}

function asJson(value: string): string {
  try {
    JSON.parse(value);
    return value;
  } catch {
    return JSON.stringify(value);
  }
}
