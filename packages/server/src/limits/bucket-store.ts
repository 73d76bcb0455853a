import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Schema } from '../database/schema.ts';
import type { Bucket } from './bucket.ts';

/** The present time in microseconds: a number of this process, or an expression that the database evaluates. */
export type Microseconds = number | RawBuilder<number>;

/** The clock of PostgreSQL, which several nodes share where their own clocks may differ. */
export const databaseMicroseconds: RawBuilder<number> = sql<number>`(extract(epoch from clock_timestamp()) * 1000000)::bigint`;

export interface BucketState {
  readonly fullAt: number;
  readonly now: number;
}

/**
 * Takes tokens from a stored bucket in one statement, so that any number of callers at once take no more
 * than it holds. Undefined when it does not hold that many.
 */
export async function takeTokens(
  database: Kysely<Schema>,
  key: string,
  bucket: Bucket,
  now: Microseconds,
  tokens: number,
): Promise<BucketState | undefined> {
  const cost = microseconds(bucket.interval * tokens);
  const present = microseconds(now);
  const fullAt = sql`(case when token_buckets.full_at > ${present} then token_buckets.full_at else ${present} end)`;
  const result = await sql<{ full_at: number; now_at: number }>`
    insert into token_buckets (key, full_at) values (${key}, ${present} + ${cost})
    on conflict (key) do update set full_at = ${fullAt} + ${cost}
    where ${fullAt} + ${cost} - ${microseconds(bucket.tolerance)} <= ${present}
    returning full_at, ${present} as now_at`.execute(database);
  const row = result.rows[0];
  return row === undefined ? undefined : { fullAt: Number(row.full_at), now: Number(row.now_at) };
}

/** PostgreSQL does not guess the type of a parameter in arithmetic. */
function microseconds(value: Microseconds): RawBuilder<number> {
  return typeof value === 'number' ? sql<number>`cast(${value} as bigint)` : value;
}

/** What a stored bucket looks like without taking from it. */
export async function readBucket(
  database: Kysely<Schema>,
  key: string,
  now: Microseconds,
): Promise<BucketState> {
  const result = await sql<{ full_at: number; now_at: number }>`
    select full_at, ${microseconds(now)} as now_at from token_buckets where key = ${key}`.execute(database);
  const row = result.rows[0];
  if (row !== undefined) return { fullAt: Number(row.full_at), now: Number(row.now_at) };
  return { fullAt: 0, now: typeof now === 'number' ? now : Date.now() * 1000 };
}

/** Gives tokens back, when what they were taken for turned out not to count. */
export async function giveTokens(
  database: Kysely<Schema>,
  key: string,
  bucket: Bucket,
  tokens: number,
): Promise<void> {
  await database
    .updateTable('token_buckets')
    .set((row) => ({ full_at: row('full_at', '-', bucket.interval * tokens) }))
    .where('key', '=', key)
    .execute();
}

/** Deletes the rows of buckets that are full and so say nothing. */
export async function sweepBuckets(database: Kysely<Schema>, now: number): Promise<void> {
  await database.deleteFrom('token_buckets').where('full_at', '<', now).execute();
}
