import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import type { ObjectStore } from '../objects/objects.ts';
import type { Success } from './engine.ts';

/** One row: every value as text, NULL as null. */
export type Row = (string | null)[];

export interface RowPage {
  readonly rows: Row[];
  /** The byte at which the next page begins; undefined after the last row. */
  readonly next: number | undefined;
}

const firstReadBytes = 256 * 1024;
/** Once a page has so many bytes it has no more rows, though more were asked for. */
const pageBytes = 8 * 1024 * 1024;
const newline = 0x0a;

/** Where the results of queries lie: rows as lines of text, and the same in Parquet with types. */
export class StoredResults {
  readonly #objects: ObjectStore;

  constructor(objects: ObjectStore) {
    this.#objects = objects;
  }

  /** Stores a result and answers the size of its rows. */
  async put(organizationId: string, queryId: string, result: Success): Promise<number> {
    const [rowsBytes] = await Promise.all([
      this.#putFile(rowsKey(organizationId, queryId), result.rowsPath),
      this.#putFile(parquetKey(organizationId, queryId), result.parquetPath),
    ]);
    return rowsBytes;
  }

  /**
   * A page of rows from a byte on. What it costs does not depend on where that is: only the page itself is
   * read, a little more than needed at first and the rest when rows are long.
   */
  async page(
    organizationId: string,
    queryId: string,
    from: number,
    { size, limit }: { size: number; limit: number },
  ): Promise<RowPage> {
    const key = rowsKey(organizationId, queryId);
    const rows: Row[] = [];
    let read = Buffer.alloc(0);
    let taken = 0;
    while (from + read.length < size) {
      const start = from + read.length;
      const end = Math.min(size, start + Math.max(firstReadBytes, read.length)) - 1;
      read = Buffer.concat([read, await this.#range(key, start, end)]);
      for (;;) {
        const lineEnd = read.indexOf(newline, taken);
        if (lineEnd < 0) break;
        rows.push(rowOf(read.toString('utf8', taken, lineEnd)));
        taken = lineEnd + 1;
        if (rows.length === limit || taken >= pageBytes) {
          return { rows, next: from + taken < size ? from + taken : undefined };
        }
      }
    }
    return { rows, next: undefined };
  }

  /** All rows, one after the other. */
  async *rows(organizationId: string, queryId: string): AsyncGenerator<Row> {
    const object = await this.#objects.get(rowsKey(organizationId, queryId));
    if (object === undefined) throw new Error('the result of a query is gone');
    // A row may be long: its pieces are put together once, when it ends.
    let pieces: string[] = [];
    for await (const text of object.body.setEncoding('utf8')) {
      const [first = '', ...lines] = String(text).split('\n');
      pieces.push(first);
      for (const line of lines) {
        yield rowOf(pieces.join(''));
        pieces = [line];
      }
    }
  }

  async *parquet(organizationId: string, queryId: string): AsyncGenerator<Uint8Array> {
    const object = await this.#objects.get(parquetKey(organizationId, queryId));
    if (object === undefined) throw new Error('the result of a query is gone');
    for await (const chunk of object.body) yield chunk;
  }

  async delete(organizationId: string, queryId: string): Promise<void> {
    await this.#objects.delete(rowsKey(organizationId, queryId));
    await this.#objects.delete(parquetKey(organizationId, queryId));
  }

  async #putFile(key: string, path: string): Promise<number> {
    // The file was written by a process that ran foreign SQL: a link in its place is not followed.
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
    try {
      const { size } = await file.stat();
      if (size <= firstReadBytes) await this.#objects.put(key, await file.readFile());
      else await this.#objects.put(key, file.createReadStream({ autoClose: false }), { contentLength: size });
      return size;
    } finally {
      await file.close();
    }
  }

  async #range(key: string, start: number, end: number): Promise<Buffer> {
    const object = await this.#objects.get(key, { start, end });
    if (object === undefined) throw new Error('the result of a query is gone');
    const chunks: Buffer[] = [];
    for await (const chunk of object.body) chunks.push(chunk);
    return Buffer.concat(chunks);
  }
}

function rowsKey(organizationId: string, queryId: string): string {
  return `results/${organizationId}/${queryId}/rows.ndjson`;
}

function parquetKey(organizationId: string, queryId: string): string {
  return `results/${organizationId}/${queryId}/result.parquet`;
}

function rowOf(line: string): Row {
  return JSON.parse(line).r;
}
