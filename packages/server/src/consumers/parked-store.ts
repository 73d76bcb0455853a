import type { Kysely } from 'kysely';
import type { Schema } from '../database/schema.ts';

type Queries = Kysely<Schema>;

interface SharePlace {
  readonly topicName: string;
  readonly partition: number;
}

/** A parked record as it is written. */
export interface ParkedRecord extends SharePlace {
  readonly offset: number;
  /** As it is stored. */
  readonly key: string;
  readonly attempts: number;
  readonly nextAttemptAt: number | undefined;
  readonly error: string | undefined;
  /** The record as text, when the log need not have it. */
  readonly stored: string | undefined;
}

export interface ParkedKeyRow {
  readonly key: string;
  readonly rows: number;
  readonly nextAttemptAt: number | undefined;
}

const rowsAtOnce = 500;

/** Parks records, or changes what is known of parked ones. A record that is stored with its row stays so. */
export async function putParked(
  queries: Queries,
  consumerId: string,
  records: readonly ParkedRecord[],
): Promise<void> {
  for (let start = 0; start < records.length; start += rowsAtOnce) {
    await queries
      .insertInto('parked_messages')
      .values(
        records.slice(start, start + rowsAtOnce).map((record) => ({
          consumer_id: consumerId,
          topic_name: record.topicName,
          partition: record.partition,
          record_offset: record.offset,
          key: record.key,
          attempts: record.attempts,
          next_attempt_at: record.nextAttemptAt ?? null,
          error: record.error ?? null,
          record: record.stored ?? null,
        })),
      )
      .onConflict((conflict) =>
        conflict.columns(['consumer_id', 'topic_name', 'partition', 'record_offset']).doUpdateSet((row) => ({
          attempts: row.ref('excluded.attempts'),
          next_attempt_at: row.ref('excluded.next_attempt_at'),
          error: row.ref('excluded.error'),
          record: row.fn.coalesce('excluded.record', 'parked_messages.record'),
        })),
      )
      .execute();
  }
}

export async function deleteParked(
  queries: Queries,
  consumerId: string,
  { topicName, partition }: SharePlace,
  offsets: readonly number[],
): Promise<void> {
  for (let start = 0; start < offsets.length; start += rowsAtOnce) {
    await queries
      .deleteFrom('parked_messages')
      .where('consumer_id', '=', consumerId)
      .where('topic_name', '=', topicName)
      .where('partition', '=', partition)
      .where('record_offset', 'in', offsets.slice(start, start + rowsAtOnce))
      .execute();
  }
}

/** The partitions of a topic in which a consumer has parked records. */
export async function listPartitionsWithParked(
  queries: Queries,
  consumerId: string,
  topicName: string,
): Promise<Set<number>> {
  const rows = await queries
    .selectFrom('parked_messages')
    .select('partition')
    .where('consumer_id', '=', consumerId)
    .where('topic_name', '=', topicName)
    .groupBy('partition')
    .execute();
  return new Set(rows.map((row) => row.partition));
}

/** The keys of a share that have parked records, a page at a time, as they are stored. */
export async function listParkedKeys(
  queries: Queries,
  consumerId: string,
  { topicName, partition }: SharePlace,
  after: string,
  limit: number,
): Promise<ParkedKeyRow[]> {
  const rows = await queries
    .selectFrom('parked_messages')
    .select((row) => [
      'key',
      row.fn.countAll<number>().as('rows'),
      row.fn.max('next_attempt_at').as('next_attempt_at'),
    ])
    .where('consumer_id', '=', consumerId)
    .where('topic_name', '=', topicName)
    .where('partition', '=', partition)
    .where('key', '>', after)
    .groupBy('key')
    .orderBy('key')
    .limit(limit)
    .execute();
  return rows.map((row) => ({
    key: row.key,
    rows: row.rows,
    nextAttemptAt: row.next_attempt_at ?? undefined,
  }));
}

/** Records that were parked before the cursor came to them. Few: no more than a node reads ahead. */
export async function listParkedAfter(
  queries: Queries,
  consumerId: string,
  { topicName, partition }: SharePlace,
  cursor: number,
): Promise<number[]> {
  const rows = await queries
    .selectFrom('parked_messages')
    .select('record_offset')
    .where('consumer_id', '=', consumerId)
    .where('topic_name', '=', topicName)
    .where('partition', '=', partition)
    .where('record_offset', '>', cursor)
    .execute();
  return rows.map((row) => row.record_offset);
}

export interface ParkedRow {
  readonly offset: number;
  readonly attempts: number;
  readonly stored: string | undefined;
}

/** The first parked records of a key, in order. */
export async function listParkedOfKey(
  queries: Queries,
  consumerId: string,
  { topicName, partition }: SharePlace,
  key: string,
  limit: number,
): Promise<ParkedRow[]> {
  const rows = await queries
    .selectFrom('parked_messages')
    .select(['record_offset', 'attempts', 'record'])
    .where('consumer_id', '=', consumerId)
    .where('topic_name', '=', topicName)
    .where('partition', '=', partition)
    .where('key', '=', key)
    .orderBy('record_offset')
    .limit(limit)
    .execute();
  return rows.map((row) => ({
    offset: row.record_offset,
    attempts: row.attempts,
    stored: row.record ?? undefined,
  }));
}

/** Parked records between two offsets that only the log has. */
export async function listUnstored(
  queries: Queries,
  consumerId: string,
  { topicName, partition }: SharePlace,
  { after, through }: { readonly after: number; readonly through: number },
  limit: number,
): Promise<number[]> {
  const rows = await queries
    .selectFrom('parked_messages')
    .select('record_offset')
    .where('consumer_id', '=', consumerId)
    .where('topic_name', '=', topicName)
    .where('partition', '=', partition)
    .where('record_offset', '>', after)
    .where('record_offset', '<=', through)
    .where('record', 'is', null)
    .orderBy('record_offset')
    .limit(limit)
    .execute();
  return rows.map((row) => row.record_offset);
}

/** Keeps a parked record with its row. Nothing happens if it is parked no longer. */
export async function storeParked(
  queries: Queries,
  consumerId: string,
  { topicName, partition }: SharePlace,
  offset: number,
  record: string,
): Promise<void> {
  await queries
    .updateTable('parked_messages')
    .set({ record })
    .where('consumer_id', '=', consumerId)
    .where('topic_name', '=', topicName)
    .where('partition', '=', partition)
    .where('record_offset', '=', offset)
    .execute();
}

export async function countParked(queries: Queries, consumerId: string): Promise<number> {
  const row = await queries
    .selectFrom('parked_messages')
    .select((select) => select.fn.countAll<number>().as('count'))
    .where('consumer_id', '=', consumerId)
    .executeTakeFirst();
  return row?.count ?? 0;
}
