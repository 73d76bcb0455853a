import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Database } from '../database/database.ts';
import type { Schema } from '../database/schema.ts';
import type { Clock } from '../platform/clock.ts';

type Queries = Kysely<Schema>;

export interface LiveNode {
  readonly id: string;
  readonly incarnation: string;
  readonly registrations: number;
}

/**
 * The present time of the database. Nodes of PostgreSQL go by its clock, so theirs may differ; SQLite has
 * one process and so one clock.
 */
export function databaseTime(database: Database, clock: Clock, offset = 0): RawBuilder<number> {
  return database.engine === 'postgres'
    ? sql<number>`(extract(epoch from clock_timestamp()) * 1000 + cast(${offset} as bigint))::bigint`
    : sql<number>`cast(${clock.now() + offset} as integer)`;
}

/** Adds this run of the node. One before it with the same id is dead from then on. */
export async function joinNodes(
  database: Database,
  node: { id: string; incarnation: string; consumerIds: readonly string[] },
  expiresAt: RawBuilder<number>,
): Promise<void> {
  await database.transaction(async (transaction) => {
    await transaction.deleteFrom('consumer_nodes').where('id', '=', node.id).execute();
    await transaction
      .insertInto('consumer_nodes')
      .values({ id: node.id, incarnation: node.incarnation, expires_at: expiresAt, registrations: 0 })
      .execute();
    await insertRegistrations(transaction, node.incarnation, node.consumerIds);
  });
}

/** Prolongs the life of this run; false when its row is gone. */
export async function prolongNode(
  queries: Queries,
  incarnation: string,
  expiresAt: RawBuilder<number>,
): Promise<boolean> {
  const result = await queries
    .updateTable('consumer_nodes')
    .set({ expires_at: expiresAt })
    .where('incarnation', '=', incarnation)
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** The run that a node id now stands for. */
export async function findIncarnation(queries: Queries, id: string): Promise<string | undefined> {
  const row = await queries
    .selectFrom('consumer_nodes')
    .select('incarnation')
    .where('id', '=', id)
    .executeTakeFirst();
  return row?.incarnation;
}

export function listLiveNodes(queries: Queries, now: RawBuilder<number>): Promise<LiveNode[]> {
  return queries
    .selectFrom('consumer_nodes')
    .select(['id', 'incarnation', 'registrations'])
    .where('expires_at', '>', now)
    .orderBy('id')
    .execute();
}

export async function listRegistrations(queries: Queries, incarnation: string): Promise<string[]> {
  const rows = await queries
    .selectFrom('consumer_registrations')
    .select('consumer_id')
    .where('incarnation', '=', incarnation)
    .execute();
  return rows.map((row) => row.consumer_id);
}

/** Makes known which consumers this run has. */
export async function changeRegistrations(
  database: Database,
  incarnation: string,
  added: readonly string[],
  removed: readonly string[],
): Promise<void> {
  await database.transaction(async (transaction) => {
    for (let start = 0; start < removed.length; start += 500) {
      await transaction
        .deleteFrom('consumer_registrations')
        .where('incarnation', '=', incarnation)
        .where('consumer_id', 'in', removed.slice(start, start + 500))
        .execute();
    }
    await insertRegistrations(transaction, incarnation, added);
    await transaction
      .updateTable('consumer_nodes')
      .set((row) => ({ registrations: row('registrations', '+', 1) }))
      .where('incarnation', '=', incarnation)
      .execute();
  });
}

async function insertRegistrations(
  queries: Queries,
  incarnation: string,
  consumerIds: readonly string[],
): Promise<void> {
  for (let start = 0; start < consumerIds.length; start += 500) {
    await queries
      .insertInto('consumer_registrations')
      .values(consumerIds.slice(start, start + 500).map((consumer_id) => ({ incarnation, consumer_id })))
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  }
}

/** Takes this run out and gives up all its shares, so that others need not wait for it to expire. */
export async function leaveNodes(database: Database, incarnation: string): Promise<void> {
  await database.transaction(async (transaction) => {
    await transaction
      .updateTable('consumer_shares')
      .set((row) => ({ holder: null, version: row('version', '+', 1) }))
      .where('holder', '=', incarnation)
      .execute();
    await transaction.deleteFrom('consumer_nodes').where('incarnation', '=', incarnation).execute();
  });
}

export async function deleteExpiredNodes(queries: Queries, before: RawBuilder<number>): Promise<void> {
  await queries.deleteFrom('consumer_nodes').where('expires_at', '<', before).execute();
}
