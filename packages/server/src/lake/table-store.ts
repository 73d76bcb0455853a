import type { Kysely, Selectable } from 'kysely';
import type { Database } from '../database/database.ts';
import type { LakeTableRow, Schema } from '../database/schema.ts';
import type { TopicAddress } from '../events/events.ts';
import type { LakeTable, SchemaVersion, TableChange } from './catalog.ts';
import { firstColumnId } from './columns.ts';

type Queries = Kysely<Schema>;

/** What a table is before anything is known of it. */
export function newTable({ organizationId, topicName }: TopicAddress): LakeTable {
  return { organizationId, topicName, version: 0, nextColumnId: firstColumnId, fixed: false, columns: [] };
}

export async function readTable(
  queries: Queries,
  { organizationId, topicName }: TopicAddress,
): Promise<LakeTable | undefined> {
  const row = await queries
    .selectFrom('lake_tables')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .where('topic_name', '=', topicName)
    .executeTakeFirst();
  return row === undefined ? undefined : tableOf(row);
}

export async function dropTable(
  database: Database,
  { organizationId, topicName }: TopicAddress,
): Promise<boolean> {
  return database.transaction(async (transaction) => {
    const file = await transaction
      .selectFrom('lake_files')
      .select('key')
      .where('organization_id', '=', organizationId)
      .where('topic_name', '=', topicName)
      .limit(1)
      .executeTakeFirst();
    if (file !== undefined) return false;
    for (const table of ['lake_tables', 'lake_layouts', 'lake_schemas'] as const) {
      await transaction
        .deleteFrom(table)
        .where('organization_id', '=', organizationId)
        .where('topic_name', '=', topicName)
        .execute();
    }
    return true;
  });
}

export function schemaVersions(queries: Queries, { organizationId, topicName }: TopicAddress) {
  return queries
    .selectFrom('lake_schemas')
    .select(['version', 'origin', 'schema', 'created_at'])
    .where('organization_id', '=', organizationId)
    .where('topic_name', '=', topicName);
}

export async function readSchema(queries: Queries, topic: TopicAddress): Promise<SchemaVersion | undefined> {
  const row = await schemaVersions(queries, topic).orderBy('version', 'desc').limit(1).executeTakeFirst();
  return row === undefined ? undefined : schemaOf(row);
}

export async function changeTable(
  database: Database,
  topic: TopicAddress,
  { base, columns, nextColumnId, fixed, schema, at }: TableChange,
): Promise<boolean> {
  return database.transaction(async (transaction) => {
    const present = (await readTable(transaction, topic)) ?? newTable(topic);
    if (present.version !== base.version) return false;
    await writeTable(transaction, {
      ...present,
      columns,
      nextColumnId,
      fixed,
      version: present.version + 1,
    });
    if (schema !== undefined) {
      const last = await readSchema(transaction, topic);
      await transaction
        .insertInto('lake_schemas')
        .values({
          organization_id: topic.organizationId,
          topic_name: topic.topicName,
          version: (last?.version ?? 0) + 1,
          origin: schema.origin,
          schema: schema.text,
          created_at: at,
        })
        .execute();
    }
    return true;
  });
}

export async function writeTable(transaction: Queries, table: LakeTable): Promise<void> {
  const values = {
    version: table.version,
    next_column_id: table.nextColumnId,
    fixed: table.fixed ? 1 : 0,
    columns: JSON.stringify(table.columns),
  } as const;
  await transaction
    .insertInto('lake_tables')
    .values({ organization_id: table.organizationId, topic_name: table.topicName, ...values })
    .onConflict((conflict) => conflict.columns(['organization_id', 'topic_name']).doUpdateSet(values))
    .execute();
}

export function tableOf(row: Selectable<LakeTableRow>): LakeTable {
  return {
    organizationId: row.organization_id,
    topicName: row.topic_name,
    version: row.version,
    nextColumnId: row.next_column_id,
    fixed: row.fixed === 1,
    columns: JSON.parse(row.columns),
  };
}

export function schemaOf(row: {
  version: number;
  origin: 'uploaded' | 'inferred';
  schema: string;
  created_at: number;
}): SchemaVersion {
  return { version: row.version, origin: row.origin, schema: row.schema, createdAt: row.created_at };
}
