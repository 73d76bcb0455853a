import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Database } from '../database/database.ts';
import type { Schema } from '../database/schema.ts';
import type { Clock } from '../platform/clock.ts';
import type { ResultColumn } from './engine.ts';

export type Queries = Kysely<Schema>;

export type QueryState = 'QUEUED' | 'RUNNING' | 'SUCCEEDED' | 'FAILED' | 'CANCELLED';

/** A query as it is known, without what was found. */
export interface QueryRecord {
  readonly organizationId: string;
  readonly id: string;
  readonly sql: string;
  readonly state: QueryState;
  readonly username: string | undefined;
  readonly submittedAt: number;
  readonly completedAt: number | undefined;
  readonly bytesScanned: number | undefined;
  readonly executionMilliseconds: number | undefined;
  readonly error: string | undefined;
}

/** How a query ended. */
export interface QueryEnd {
  readonly state: 'SUCCEEDED' | 'FAILED' | 'CANCELLED';
  readonly error?: string | undefined;
  readonly bytesScanned?: number | undefined;
  readonly executionMilliseconds?: number | undefined;
  readonly columns?: readonly ResultColumn[] | undefined;
  readonly rowsBytes?: number | undefined;
}

/** What is needed to read a result. */
export interface ResultRecord {
  readonly state: QueryState;
  readonly columns: readonly ResultColumn[];
  readonly rowsBytes: number;
}

const shown = [
  'organization_id',
  'id',
  'sql',
  'state',
  'username',
  'submitted_at',
  'completed_at',
  'bytes_scanned',
  'execution_milliseconds',
  'error',
] as const;

type ShownRow = Pick<Schema['queries'], (typeof shown)[number]>;

/** The time of the database where several nodes share one, since their clocks may differ. */
function databaseTime(database: Database, clock: Clock, offset = 0): RawBuilder<number> {
  return database.engine === 'postgres'
    ? sql<number>`(extract(epoch from clock_timestamp()) * 1000 + cast(${offset} as bigint))::bigint`
    : sql<number>`cast(${clock.now() + offset} as integer)`;
}

export async function insertQuery(
  database: Database,
  clock: Clock,
  query: {
    organizationId: string;
    id: string;
    sql: string;
    username: string | undefined;
    nodeId: string;
    submittedAt: number;
    aliveMilliseconds: number;
  },
): Promise<void> {
  await database.query
    .insertInto('queries')
    .values({
      organization_id: query.organizationId,
      id: query.id,
      sql: query.sql,
      state: 'QUEUED',
      username: query.username ?? null,
      node_id: query.nodeId,
      alive_until: databaseTime(database, clock, query.aliveMilliseconds),
      submitted_at: query.submittedAt,
    })
    .execute();
}

/** Marks a query as running. */
export async function markRunning(queries: Queries, organizationId: string, id: string): Promise<void> {
  await queries
    .updateTable('queries')
    .set({ state: 'RUNNING' })
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .where('state', '=', 'QUEUED')
    .execute();
}

/** Ends a query; false when it had ended before. */
export async function endQuery(
  queries: Queries,
  organizationId: string,
  id: string,
  end: QueryEnd,
  now: number,
): Promise<boolean> {
  const result = await queries
    .updateTable('queries')
    .set({
      state: end.state,
      completed_at: now,
      error: end.error ?? null,
      bytes_scanned: end.bytesScanned ?? null,
      execution_milliseconds: end.executionMilliseconds ?? null,
      columns: end.columns === undefined ? null : JSON.stringify(end.columns),
      rows_bytes: end.rowsBytes ?? null,
    })
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .where('state', 'in', ['QUEUED', 'RUNNING'])
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

export async function findQuery(
  queries: Queries,
  organizationId: string,
  id: string,
): Promise<QueryRecord | undefined> {
  const row = await queries
    .selectFrom('queries')
    .select(shown)
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .executeTakeFirst();
  return row && recordOf(row);
}

export async function findResult(
  queries: Queries,
  organizationId: string,
  id: string,
): Promise<ResultRecord | undefined> {
  const row = await queries
    .selectFrom('queries')
    .select(['state', 'columns', 'rows_bytes'])
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const columns: ResultColumn[] = row.columns === null ? [] : JSON.parse(row.columns);
  return { state: stateOf(row.state), columns, rowsBytes: row.rows_bytes ?? 0 };
}

/** The last queries of an organization, newest first. */
export async function listQueries(
  queries: Queries,
  organizationId: string,
  limit: number,
): Promise<QueryRecord[]> {
  const rows = await queries
    .selectFrom('queries')
    .select(shown)
    .where('organization_id', '=', organizationId)
    .orderBy('submitted_at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .execute();
  return rows.map(recordOf);
}

/** Fails what this node was at when it ended. */
export async function failUnfinished(
  queries: Queries,
  nodeId: string,
  reason: string,
  now: number,
): Promise<void> {
  await queries
    .updateTable('queries')
    .set({ state: 'FAILED', error: reason, completed_at: now })
    .where('state', 'in', ['QUEUED', 'RUNNING'])
    .where('node_id', '=', nodeId)
    .execute();
}

/** Moves on how long the queries of this node are believed to be alive. */
export async function prolongQueries(
  database: Database,
  clock: Clock,
  nodeId: string,
  aliveMilliseconds: number,
): Promise<void> {
  await database.query
    .updateTable('queries')
    .set({ alive_until: databaseTime(database, clock, aliveMilliseconds) })
    .where('state', 'in', ['QUEUED', 'RUNNING'])
    .where('node_id', '=', nodeId)
    .execute();
}

/** Fails the queries of nodes that have gone. */
export async function failAbandoned(database: Database, clock: Clock, reason: string): Promise<void> {
  await database.query
    .updateTable('queries')
    .set({ state: 'FAILED', error: reason, completed_at: clock.now() })
    .where('state', 'in', ['QUEUED', 'RUNNING'])
    .where('alive_until', '<', databaseTime(database, clock))
    .execute();
}

/** Some queries that are older than the given time. */
export async function listOldQueries(
  queries: Queries,
  before: number,
  limit: number,
): Promise<{ organizationId: string; id: string }[]> {
  const rows = await queries
    .selectFrom('queries')
    .select(['organization_id', 'id'])
    .where('submitted_at', '<', before)
    .orderBy('submitted_at')
    .limit(limit)
    .execute();
  return rows.map((row) => ({ organizationId: row.organization_id, id: row.id }));
}

export async function deleteQuery(queries: Queries, organizationId: string, id: string): Promise<void> {
  await queries
    .deleteFrom('queries')
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .execute();
}

function recordOf(row: ShownRow): QueryRecord {
  return {
    organizationId: row.organization_id,
    id: row.id,
    sql: row.sql,
    state: stateOf(row.state),
    username: row.username ?? undefined,
    submittedAt: row.submitted_at,
    completedAt: row.completed_at ?? undefined,
    bytesScanned: row.bytes_scanned ?? undefined,
    executionMilliseconds: row.execution_milliseconds ?? undefined,
    error: row.error ?? undefined,
  };
}

function stateOf(text: string): QueryState {
  const states: readonly QueryState[] = ['QUEUED', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELLED'];
  const state = states.find((each) => each === text);
  if (state === undefined) throw new Error(`a query has the state ${text}`);
  return state;
}
