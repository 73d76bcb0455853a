import { isUtf8 } from 'node:buffer';
import { statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { type Column, countColumns, sameColumns } from '../columns.ts';
import { type EngineOptions, withEngine } from './engine.ts';
import { batchHeaderBytes, indexEntryBytes } from './frames.ts';
import { linesSql, writeParquet } from './parquet.ts';
import type { WrittenFile } from './protocol.ts';
import { isAboutLines, repairLines } from './repair.ts';
import { type Segment, Spool } from './spool.ts';
import { Typer, type TyperOptions } from './typer.ts';

const comma = 0x2c;

export interface WriteOutcome {
  readonly columns: readonly Column[];
  readonly nextColumnId: number;
  readonly files: readonly WrittenFile[];
}

/** A segment on its way into a file, or there. */
interface Conversion {
  readonly segment: Segment;
  readonly columns: readonly Column[];
  readonly file: Promise<WrittenFile>;
}

/**
 * Lines of one hour after which a file is begun while more are taken, so that the engine works beside us. A
 * write of the usual size makes two or three files where there is a backlog, and one otherwise.
 */
const segmentBytes = 32 << 20;

/** One write: takes batches of records, and at the end makes a file of each hour. */
export class WriteJob {
  readonly #typer: Typer;
  readonly #spool: Spool;
  readonly #directory: string;
  readonly #engine: EngineOptions;
  readonly #conversions: Conversion[] = [];

  constructor(options: TyperOptions & { readonly directory: string }, engine: EngineOptions) {
    this.#engine = engine;
    this.#typer = new Typer(options);
    this.#directory = options.directory;
    this.#spool = new Spool(join(options.directory, 'spool'));
  }

  /** Takes a batch (frames.ts, without its length), changing it on the way. */
  take(batch: Buffer): void {
    const index = new DataView(batch.buffer, batch.byteOffset, batch.byteLength);
    const count = index.getUint32(0, true);
    let entry = batchHeaderBytes - 4;
    let line = entry + count * indexEntryBytes;
    const isText = isUtf8(batch.subarray(line));
    // Lines in a row that go to one file as they are, which most do, are written at once.
    let run = line;
    let runSegment: Segment | undefined;
    for (const last = line; entry < last; entry += indexEntryBytes) {
      const acceptedAt = index.getFloat64(entry, true);
      const body = line + index.getUint32(entry + 8, true);
      const end = body + index.getUint32(entry + 12, true);
      const segment = this.#spool.segmentOf(acceptedAt);
      if (segment !== runSegment) {
        if (runSegment !== undefined) this.#spool.append(runSegment, batch, run, line);
        runSegment = segment;
        run = line;
      }
      if ((isText || isUtf8(batch.subarray(body, end))) && this.#typer.fits(batch, body, end)) {
        batch[body] = comma;
        note(segment, acceptedAt, end - line, false);
      } else {
        this.#spool.append(segment, batch, run, line);
        this.#takeApart(segment, acceptedAt, batch.toString('utf8', line, body), batch.subarray(body, end));
        run = end + 1;
      }
      line = end + 1;
    }
    if (runSegment !== undefined) this.#spool.append(runSegment, batch, run, line);
    for (const segment of this.#spool.cut(segmentBytes))
      this.#convert(segment, this.#typer.columns().columns);
  }

  /** Ends the taking, writes what is not written yet, and again what was written before columns changed. */
  async seal(): Promise<WriteOutcome> {
    const { columns, nextColumnId } = this.#typer.columns();
    for (const segment of this.#spool.finish()) this.#convert(segment, columns);
    const files: WrittenFile[] = [];
    for (const conversion of this.#conversions) {
      const early = sameColumns(conversion.columns, columns);
      const file = await conversion.file;
      files.push(early ? file : await this.#write(conversion.segment, columns));
    }
    this.#spool.discard();
    return { columns, nextColumnId, files: files.sort((one, other) => one.hour - other.hour) };
  }

  /** Makes a file of a segment while others are still filled, when it is its turn. */
  #convert(segment: Segment, columns: readonly Column[]): void {
    const before = this.#conversions.at(-1)?.file ?? Promise.resolve();
    const file = before.then(() => this.#write(segment, columns));
    // A failure is told when the job is sealed, or when the server lets go of it.
    file.catch(() => {});
    this.#conversions.push({ segment, columns, file });
  }

  #takeApart(segment: Segment, acceptedAt: number, head: string, body: Buffer): void {
    const { members, rescued } = this.#typer.type(body);
    let text = head;
    if (rescued !== undefined) text += `,"_rescued":${JSON.stringify(rescued)}`;
    if (members !== '') text += `,${members}`;
    const line = Buffer.from(`${text}}\n`);
    this.#spool.append(segment, line, 0, line.length);
    note(segment, acceptedAt, line.length, rescued !== undefined);
  }

  async #write(segment: Segment, columns: readonly Column[]): Promise<WrittenFile> {
    const { path: source, hour, rows, minIngestedAt, maxIngestedAt, longestLine } = segment;
    const path = join(this.#directory, `${basename(source, '.jsonl')}.parquet`);
    const lines = { path: source, columns, offsets: this.#typer.offsets, longestLine };
    await withEngine(this.#engine, countColumns(columns), async (connection) => {
      try {
        await writeParquet(connection, linesSql(lines), columns, path);
      } catch (error) {
        if (!isAboutLines(error)) throw error;
        segment.rescued = Math.min(rows, segment.rescued + (await repairLines(connection, lines)));
        await writeParquet(connection, linesSql(lines), columns, path);
      }
    });
    const { rescued } = segment;
    return { hour, path, rows, bytes: statSync(path).size, rescued, minIngestedAt, maxIngestedAt };
  }
}

function note(segment: Segment, acceptedAt: number, lineBytes: number, rescued: boolean): void {
  segment.rows++;
  if (rescued) segment.rescued++;
  if (lineBytes > segment.longestLine) segment.longestLine = lineBytes;
  if (acceptedAt < segment.minIngestedAt) segment.minIngestedAt = acceptedAt;
  if (acceptedAt > segment.maxIngestedAt) segment.maxIngestedAt = acceptedAt;
}
