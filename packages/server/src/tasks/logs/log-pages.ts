import type { Kysely } from 'kysely';
import type { Schema } from '../../database/schema.ts';
import { restoreLines } from './stored-line.ts';
import type { LogLine, LogListing, LogPage } from './task-log.ts';
import { type ChunkRange, readChunks, readLastChunks } from './task-log-store.ts';

type Queries = Kysely<Schema>;

/** Once a page holds so many characters of text it has no more lines, though more were asked for. */
const pageCharacters = 4 * 1024 * 1024;
const chunksAtOnce = 64;

/** A line and its place in the log of its task. */
export interface PlacedLine {
  readonly position: number;
  readonly line: LogLine;
}

/** A page of the log of a task, oldest line first. */
export async function listLines(
  queries: Queries,
  organizationId: string,
  taskId: string,
  { since, after, newest, limit }: LogListing,
): Promise<LogPage> {
  const range = { organizationId, taskId, after: positionOf(after), since };
  if (newest) {
    const lines = await newestLines(queries, range, limit);
    return { lines: lines.map(({ line }) => line), next: undefined };
  }
  const { lines, more } = await nextLines(queries, range, limit);
  const last = lines.at(-1);
  return {
    lines: lines.map(({ line }) => line),
    next: more && last !== undefined ? String(last.position) : undefined,
  };
}

/** The first lines of a range, and whether others follow. */
export async function nextLines(
  queries: Queries,
  range: ChunkRange,
  limit: number,
): Promise<{ lines: PlacedLine[]; more: boolean }> {
  const lines: PlacedLine[] = [];
  let characters = 0;
  let after = range.after;
  for (;;) {
    const chunks = await readChunks(queries, { ...range, after }, chunksAtOnce);
    for (const chunk of chunks) {
      for (const placed of linesOf(chunk.first, chunk.content, range)) {
        if (lines.length >= limit || characters >= pageCharacters) return { lines, more: true };
        lines.push(placed);
        characters += placed.line.text.length;
      }
      after = chunk.last;
    }
    if (chunks.length < chunksAtOnce) return { lines, more: false };
  }
}

/** The last lines of a range. */
async function newestLines(queries: Queries, range: ChunkRange, limit: number): Promise<PlacedLine[]> {
  const pages: PlacedLine[][] = [];
  let count = 0;
  let characters = 0;
  let before = Number.MAX_SAFE_INTEGER;
  while (count < limit && characters < pageCharacters) {
    const chunks = await readLastChunks(queries, range, before, chunksAtOnce);
    for (const chunk of chunks) {
      const lines = linesOf(chunk.first, chunk.content, range);
      pages.push(lines);
      count += lines.length;
      characters += lines.reduce((sum, { line }) => sum + line.text.length, 0);
      before = chunk.last;
      if (count >= limit || characters >= pageCharacters) break;
    }
    if (chunks.length < chunksAtOnce) break;
  }
  return pages.reverse().flat().slice(-limit);
}

function linesOf(first: number, content: string, { after, since }: ChunkRange): PlacedLine[] {
  return restoreLines(content)
    .map((line, index) => ({ position: first + index, line }))
    .filter(({ position, line }) => position > after && (since === undefined || line.time >= since));
}

/** Places are handed out by `listLines` only. */
export function positionOf(after: string | undefined): number {
  return after === undefined ? 0 : Number(after);
}
