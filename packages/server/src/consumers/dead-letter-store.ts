import type { Kysely } from 'kysely';
import type { Schema } from '../database/schema.ts';

type Queries = Kysely<Schema>;

export interface NewDeadLetter {
  readonly id: string;
  readonly organizationId: string;
  readonly topicName: string;
  readonly partition: number;
  readonly offset: number;
  readonly attempts: number;
  readonly error: string;
  readonly failedAt: number;
  readonly bytes: number;
  /** The record as text. */
  readonly stored: string;
}

const rowsAtOnce = 50;

/** Keeps what could not be handled. One that is kept already, of a record that came twice, stays as it is. */
export async function insertDeadLetters(
  queries: Queries,
  consumerId: string,
  letters: readonly NewDeadLetter[],
): Promise<void> {
  for (let start = 0; start < letters.length; start += rowsAtOnce) {
    await queries
      .insertInto('dead_letters')
      .values(
        letters.slice(start, start + rowsAtOnce).map((letter) => ({
          consumer_id: consumerId,
          id: letter.id,
          organization_id: letter.organizationId,
          topic_name: letter.topicName,
          partition: letter.partition,
          record_offset: letter.offset,
          attempts: letter.attempts,
          error: letter.error,
          failed_at: letter.failedAt,
          redriven: 0 as const,
          bytes: letter.bytes,
          record: letter.stored,
        })),
      )
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  }
}

/** The ids and sizes of the next dead letters, oldest failure first. */
export function listDeadLetterSizes(
  queries: Queries,
  organizationId: string,
  consumerId: string,
  after: string,
  limit: number,
): Promise<{ id: string; bytes: number }[]> {
  return queries
    .selectFrom('dead_letters')
    .select(['id', 'bytes'])
    .where('consumer_id', '=', consumerId)
    .where('organization_id', '=', organizationId)
    .where('redriven', '=', 0)
    .where('id', '>', after)
    .orderBy('id')
    .limit(limit)
    .execute();
}

export function readDeadLetters(queries: Queries, consumerId: string, ids: readonly string[]) {
  return queries
    .selectFrom('dead_letters')
    .selectAll()
    .where('consumer_id', '=', consumerId)
    .where('id', 'in', ids)
    .orderBy('id')
    .execute();
}

/** Marks dead letters, some or all, to be handled again; answers how many. */
export async function markRedriven(
  queries: Queries,
  organizationId: string,
  consumerId: string,
  ids: readonly string[] | undefined,
): Promise<number> {
  let update = queries
    .updateTable('dead_letters')
    .set({ redriven: 1 })
    .where('consumer_id', '=', consumerId)
    .where('organization_id', '=', organizationId)
    .where('redriven', '=', 0);
  if (ids !== undefined) update = update.where('id', 'in', ids);
  return Number((await update.executeTakeFirst()).numUpdatedRows);
}

/** Deletes the dead letters of a consumer that are not about to be handled again; answers how many. */
export async function deleteDeadLetters(
  queries: Queries,
  organizationId: string,
  consumerId: string,
): Promise<number> {
  const result = await queries
    .deleteFrom('dead_letters')
    .where('consumer_id', '=', consumerId)
    .where('organization_id', '=', organizationId)
    .where('redriven', '=', 0)
    .executeTakeFirst();
  return Number(result.numDeletedRows);
}

/** The shares of a consumer that have dead letters to be handled again. */
export async function listSharesWithRedriven(
  queries: Queries,
  consumerId: string,
): Promise<{ topicName: string; partition: number }[]> {
  const rows = await queries
    .selectFrom('dead_letters')
    .select(['topic_name', 'partition'])
    .where('consumer_id', '=', consumerId)
    .where('redriven', '=', 1)
    .groupBy(['topic_name', 'partition'])
    .execute();
  return rows.map((row) => ({ topicName: row.topic_name, partition: row.partition }));
}

/** The first dead letters of a share that are to be handled again, in the order of the log. */
export function listRedriven(
  queries: Queries,
  consumerId: string,
  share: { readonly topicName: string; readonly partition: number },
  limit: number,
): Promise<{ id: string; record_offset: number; record: string }[]> {
  return queries
    .selectFrom('dead_letters')
    .select(['id', 'record_offset', 'record'])
    .where('consumer_id', '=', consumerId)
    .where('redriven', '=', 1)
    .where('topic_name', '=', share.topicName)
    .where('partition', '=', share.partition)
    .orderBy('record_offset')
    .limit(limit)
    .execute();
}

export async function deleteDeadLettersById(
  queries: Queries,
  consumerId: string,
  ids: readonly string[],
): Promise<void> {
  await queries
    .deleteFrom('dead_letters')
    .where('consumer_id', '=', consumerId)
    .where('id', 'in', ids)
    .execute();
}
