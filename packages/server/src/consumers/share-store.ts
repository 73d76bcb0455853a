import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Database } from '../database/database.ts';
import type { Schema } from '../database/schema.ts';
import type { PartitionAddress } from '../events/events.ts';

type Queries = Kysely<Schema>;

export interface TakenShare {
  readonly partition: number;
  readonly cursor: number;
  readonly version: number;
}

/** Where a share without a row begins. */
export interface WantedShare extends PartitionAddress {
  readonly start: number;
}

export interface CursorChange {
  readonly topicName: string;
  readonly partition: number;
  readonly version: number;
  readonly cursor: number;
}

/** Notes that a consumer exists and answers since when. */
export async function noteConsumer(
  database: Database,
  consumer: { id: string; organizationId: string; now: number },
): Promise<number> {
  const known = database.query.selectFrom('consumers').select('created_at').where('id', '=', consumer.id);
  const row = await known.executeTakeFirst();
  if (row !== undefined) return row.created_at;
  await database.query
    .insertInto('consumers')
    .values({ id: consumer.id, organization_id: consumer.organizationId, created_at: consumer.now })
    .onConflict((conflict) => conflict.column('id').doNothing())
    .execute();
  return (await known.executeTakeFirst())?.created_at ?? consumer.now;
}

/**
 * Takes the shares of one topic that nobody alive holds. The version grows, so whoever held one before
 * can change it no more.
 */
export function takeShares(
  database: Database,
  consumerId: string,
  wanted: readonly WantedShare[],
  incarnation: string,
  now: () => RawBuilder<number>,
): Promise<TakenShare[]> {
  const topicName = wanted[0]?.topicName;
  if (topicName === undefined) return Promise.resolve([]);
  return database.transaction(async (transaction) => {
    await transaction
      .insertInto('consumer_shares')
      .values(
        wanted.map((share) => ({
          consumer_id: consumerId,
          organization_id: share.organizationId,
          topic_name: topicName,
          partition: share.partition,
          cursor: share.start,
          version: 0,
          holder: null,
        })),
      )
      .onConflict((conflict) => conflict.doNothing())
      .execute();
    const rows = await transaction
      .updateTable('consumer_shares')
      .set((row) => ({ holder: incarnation, version: row('version', '+', 1) }))
      .where('consumer_id', '=', consumerId)
      .where('topic_name', '=', topicName)
      .where(
        'partition',
        'in',
        wanted.map((share) => share.partition),
      )
      .where((row) =>
        row.or([
          row('holder', 'is', null),
          row('holder', '=', incarnation),
          row(
            'holder',
            'not in',
            row.selectFrom('consumer_nodes').select('incarnation').where('expires_at', '>', now()),
          ),
        ]),
      )
      .returning(['partition', 'cursor', 'version'])
      .execute();
    return rows;
  });
}

/**
 * Moves cursors, each only if its share still has the version that the holder knows; answers the ids
 * (`topic/partition`) of those that were moved.
 */
export async function moveCursors(
  queries: Queries,
  consumerId: string,
  changes: readonly CursorChange[],
): Promise<Set<string>> {
  const [only] = changes;
  if (changes.length === 1 && only !== undefined) {
    const result = await queries
      .updateTable('consumer_shares')
      .set({ cursor: only.cursor, version: only.version + 1 })
      .where('consumer_id', '=', consumerId)
      .where('topic_name', '=', only.topicName)
      .where('partition', '=', only.partition)
      .where('version', '=', only.version)
      .executeTakeFirst();
    return new Set(result.numUpdatedRows > 0n ? [shareId(only)] : []);
  }
  const values = changes.map(
    (change) =>
      sql`(cast(${change.topicName} as text), cast(${change.partition} as integer), cast(${change.version} as bigint), cast(${change.cursor} as bigint))`,
  );
  const rows = await queries
    .with(
      'changes(changed_topic, changed_partition, seen, reached)',
      () =>
        sql<{
          changed_topic: string;
          changed_partition: number;
          seen: number;
          reached: number;
        }>`(values ${sql.join(values)})`,
    )
    .updateTable('consumer_shares')
    .from('changes')
    .set((row) => ({ cursor: row.ref('changes.reached'), version: row('consumer_shares.version', '+', 1) }))
    .where('consumer_shares.consumer_id', '=', consumerId)
    .whereRef('consumer_shares.topic_name', '=', 'changes.changed_topic')
    .whereRef('consumer_shares.partition', '=', 'changes.changed_partition')
    .whereRef('consumer_shares.version', '=', 'changes.seen')
    .returning(['consumer_shares.topic_name', 'consumer_shares.partition'])
    .execute();
  return new Set(rows.map((row) => shareId({ topicName: row.topic_name, partition: row.partition })));
}

/** What a share is like now, to find out whether a change of unknown outcome was made. */
export async function findShare(
  queries: Queries,
  consumerId: string,
  share: { readonly topicName: string; readonly partition: number },
): Promise<{ cursor: number; version: number; holder: string | null } | undefined> {
  return await queries
    .selectFrom('consumer_shares')
    .select(['cursor', 'version', 'holder'])
    .where('consumer_id', '=', consumerId)
    .where('topic_name', '=', share.topicName)
    .where('partition', '=', share.partition)
    .executeTakeFirst();
}

/** Lets another node have a share; false when its version is not the one given any more. */
export async function releaseShare(
  queries: Queries,
  consumerId: string,
  share: { readonly topicName: string; readonly partition: number; readonly version: number },
): Promise<boolean> {
  const result = await queries
    .updateTable('consumer_shares')
    .set({ holder: null, version: share.version + 1 })
    .where('consumer_id', '=', consumerId)
    .where('topic_name', '=', share.topicName)
    .where('partition', '=', share.partition)
    .where('version', '=', share.version)
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** The shares that a run of a node holds according to the database. */
export function listHeld(
  queries: Queries,
  incarnation: string,
): Promise<{ consumer_id: string; topic_name: string; partition: number; version: number }[]> {
  return queries
    .selectFrom('consumer_shares')
    .select(['consumer_id', 'topic_name', 'partition', 'version'])
    .where('holder', '=', incarnation)
    .execute();
}

export interface ShareCursor {
  readonly consumerId: string;
  readonly topicName: string;
  readonly partition: number;
  readonly cursor: number;
}

/** How far every consumer of a topic has come. */
export async function listCursorsOfTopic(
  queries: Queries,
  organizationId: string,
  topicName: string,
): Promise<ShareCursor[]> {
  const rows = await queries
    .selectFrom('consumer_shares')
    .select(['consumer_id', 'partition', 'cursor'])
    .where('organization_id', '=', organizationId)
    .where('topic_name', '=', topicName)
    .execute();
  return rows.map((row) => ({ consumerId: row.consumer_id, topicName, ...row }));
}

/** How far a consumer has come in the partitions of a topic. */
export async function listCursors(
  queries: Queries,
  consumerId: string,
  topicName: string,
): Promise<Map<number, number>> {
  const rows = await queries
    .selectFrom('consumer_shares')
    .select(['partition', 'cursor'])
    .where('consumer_id', '=', consumerId)
    .where('topic_name', '=', topicName)
    .execute();
  return new Map(rows.map((row) => [row.partition, row.cursor]));
}

/** How far a consumer has come in all its partitions. */
export async function listCursorsOfConsumer(queries: Queries, consumerId: string): Promise<ShareCursor[]> {
  const rows = await queries
    .selectFrom('consumer_shares')
    .select(['topic_name', 'partition', 'cursor'])
    .where('consumer_id', '=', consumerId)
    .orderBy('topic_name')
    .execute();
  return rows.map((row) => ({ consumerId, topicName: row.topic_name, ...row }));
}

/** Deletes a consumer with everything that is known of it. */
export async function deleteConsumer(
  database: Database,
  organizationId: string,
  consumerId: string,
): Promise<void> {
  await database.transaction(async (transaction) => {
    const consumer = await transaction
      .deleteFrom('consumers')
      .where('id', '=', consumerId)
      .where('organization_id', '=', organizationId)
      .executeTakeFirst();
    if (consumer.numDeletedRows === 0n) return;
    for (const table of ['consumer_shares', 'parked_messages', 'dead_letters'] as const) {
      await transaction.deleteFrom(table).where('consumer_id', '=', consumerId).execute();
    }
  });
}

export function shareId(share: { readonly topicName: string; readonly partition: number }): string {
  return `${share.topicName}/${share.partition}`;
}
