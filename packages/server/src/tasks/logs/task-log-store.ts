import { type Kysely, sql } from 'kysely';
import type { Schema } from '../../database/schema.ts';
import type { Batch } from './pending-logs.ts';

type Queries = Kysely<Schema>;

/** How much is kept of one task. */
export interface KeptBounds {
  readonly keptLines: number;
  readonly keptBytes: number;
}

/**
 * Keeps lines behind those that are kept already, and lets the oldest ones go where there are too many. The
 * row of the log is written first, so of several nodes that write to one log each waits for the one before:
 * what a reader sees behind a place is all that will ever be in front of what it sees next.
 */
export async function appendLines(
  transaction: Queries,
  batch: Batch,
  bounds: KeptBounds,
  now: number,
): Promise<void> {
  const { organizationId, taskId, lines, chunks } = batch;
  const bytes = chunks.reduce((sum, chunk) => sum + chunk.bytes, 0);
  const head = await transaction
    .insertInto('task_logs')
    // A log begins behind any that there was of this name before, so that nobody who goes on behind a line
    // of that one waits for places that come never.
    .values({
      organization_id: organizationId,
      task_id: taskId,
      last_position: now * 1000 + lines,
      lines,
      bytes,
    })
    .onConflict((conflict) =>
      conflict.columns(['organization_id', 'task_id']).doUpdateSet({
        last_position: sql<number>`task_logs.last_position + excluded.lines`,
        lines: sql<number>`task_logs.lines + excluded.lines`,
        bytes: sql<number>`task_logs.bytes + excluded.bytes`,
      }),
    )
    .returning(['last_position', 'lines', 'bytes'])
    .executeTakeFirstOrThrow();
  let position = head.last_position - lines;
  await transaction
    .insertInto('task_log_chunks')
    .values(
      chunks.map((chunk) => {
        position += chunk.lines;
        return {
          organization_id: organizationId,
          task_id: taskId,
          last_position: position,
          lines: chunk.lines,
          bytes: chunk.bytes,
          newest_time: chunk.newestTime,
          content: chunk.content,
        };
      }),
    )
    .execute();
  const excess = { lines: head.lines - bounds.keptLines, bytes: head.bytes - bounds.keptBytes };
  if (excess.lines > 0 || excess.bytes > 0) await letGo(transaction, batch, excess);
}

const looksAtOnce = 500;

/** Deletes the oldest chunks until there is no excess. */
async function letGo(
  transaction: Queries,
  { organizationId, taskId }: Batch,
  excess: { readonly lines: number; readonly bytes: number },
): Promise<void> {
  let lines = 0;
  let bytes = 0;
  let through = 0;
  const isDone = () => lines >= excess.lines && bytes >= excess.bytes;
  while (!isDone()) {
    const oldest = await transaction
      .selectFrom('task_log_chunks')
      .select(['last_position', 'lines', 'bytes'])
      .where('organization_id', '=', organizationId)
      .where('task_id', '=', taskId)
      .where('last_position', '>', through)
      .orderBy('last_position')
      .limit(looksAtOnce)
      .execute();
    if (oldest.length === 0) break;
    for (const chunk of oldest) {
      if (isDone()) break;
      lines += chunk.lines;
      bytes += chunk.bytes;
      through = chunk.last_position;
    }
  }
  await transaction
    .deleteFrom('task_log_chunks')
    .where('organization_id', '=', organizationId)
    .where('task_id', '=', taskId)
    .where('last_position', '<=', through)
    .execute();
  await transaction
    .updateTable('task_logs')
    .set((row) => ({ lines: row('lines', '-', lines), bytes: row('bytes', '-', bytes) }))
    .where('organization_id', '=', organizationId)
    .where('task_id', '=', taskId)
    .execute();
}

export interface FoundChunk {
  /** The places of its first and its last line. */
  readonly first: number;
  readonly last: number;
  readonly content: string;
}

export interface ChunkRange {
  readonly organizationId: string;
  readonly taskId: string;
  /** Only chunks with a line behind this place. */
  readonly after: number;
  /** Only chunks with a line from this time on. */
  readonly since: number | undefined;
}

/** The next chunks behind a place, oldest first. */
export function readChunks(queries: Queries, range: ChunkRange, limit: number): Promise<FoundChunk[]> {
  return found(chunksIn(queries, range).orderBy('last_position').limit(limit));
}

/** The last chunks before a place, newest first. */
export function readLastChunks(
  queries: Queries,
  range: ChunkRange,
  before: number,
  limit: number,
): Promise<FoundChunk[]> {
  return found(
    chunksIn(queries, range)
      .where('last_position', '<', before)
      .orderBy('last_position', 'desc')
      .limit(limit),
  );
}

function chunksIn(queries: Queries, { organizationId, taskId, after, since }: ChunkRange) {
  const chunks = queries
    .selectFrom('task_log_chunks')
    .select(['last_position', 'lines', 'content'])
    .where('organization_id', '=', organizationId)
    .where('task_id', '=', taskId)
    .where('last_position', '>', after);
  return since === undefined ? chunks : chunks.where('newest_time', '>=', since);
}

async function found(chunks: ReturnType<typeof chunksIn>): Promise<FoundChunk[]> {
  return (await chunks.execute()).map(({ last_position, lines, content }) => ({
    first: last_position - lines + 1,
    last: last_position,
    content,
  }));
}

/** The place of the newest line; 0 for a log that does not exist. */
export async function lastPosition(
  queries: Queries,
  organizationId: string,
  taskId: string,
): Promise<number> {
  const head = await queries
    .selectFrom('task_logs')
    .select('last_position')
    .where('organization_id', '=', organizationId)
    .where('task_id', '=', taskId)
    .executeTakeFirst();
  return head?.last_position ?? 0;
}

/** Deletes a log with its chunks. */
export async function deleteLog(queries: Queries, organizationId: string, taskId: string): Promise<void> {
  await queries
    .deleteFrom('task_logs')
    .where('organization_id', '=', organizationId)
    .where('task_id', '=', taskId)
    .execute();
}
