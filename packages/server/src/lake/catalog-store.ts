import { createHash } from 'node:crypto';
import type { Kysely } from 'kysely';
import type { Database } from '../database/database.ts';
import type { LakeFileRow, Schema } from '../database/schema.ts';
import type { TopicAddress } from '../events/events.ts';
import {
  type Addition,
  type Catalog,
  type LakeFile,
  type NewFile,
  type Replacement,
  smallBytes,
  TableChangedError,
} from './catalog.ts';
import { type Column, sameColumns } from './columns.ts';
import {
  changeTable,
  dropTable,
  newTable,
  readSchema,
  readTable,
  schemaOf,
  schemaVersions,
  tableOf,
  writeTable,
} from './table-store.ts';

type Queries = Kysely<Schema>;

/** Rows written, or keys asked for, in one statement. */
const rowsAtOnce = 500;

const fileColumns = [
  'key',
  'hour',
  'layout_id',
  'row_count',
  'bytes',
  'rescued',
  'min_ingested_at',
  'max_ingested_at',
  'created_at',
] as const;

/** The catalog in the service's own database. */
export function databaseCatalog(database: Database): Catalog {
  const { query } = database;
  return {
    table: (topic) => readTable(query, topic),
    tables: async (organizationId) => {
      const rows = await query
        .selectFrom('lake_tables')
        .selectAll()
        .where('organization_id', '=', organizationId)
        .orderBy('topic_name')
        .execute();
      return rows.map(tableOf);
    },
    topics: async () => {
      const rows = await query.selectFrom('lake_tables').select(['organization_id', 'topic_name']).execute();
      return rows.map((row) => ({ organizationId: row.organization_id, topicName: row.topic_name }));
    },
    snapshot: async (topic) => {
      // The files are read by one statement and so belong together. The columns may be newer than they
      // are, which is as with any file that was written before a change.
      const files = (await live(query, topic).orderBy('key').execute()).map(fileOf);
      const table = await readTable(query, topic);
      if (table === undefined) return undefined;
      const layouts = await readLayouts(query, topic, [...new Set(files.map((file) => file.layoutId))]);
      return { table, files, layouts };
    },
    page: async (topic, { from, below, after, limit }) => {
      const range = live(query, topic).where('key', '<', below);
      // With two lower bounds an engine may begin to read at the wrong one.
      const page =
        after !== undefined && after >= from
          ? range.where('key', '>', after)
          : range.where('key', '>=', from);
      return (await page.orderBy('key').limit(limit).execute()).map(fileOf);
    },
    file: async (topic, key) => {
      const row = await live(query, topic).where('key', '=', key).executeTakeFirst();
      return row === undefined ? undefined : fileOf(row);
    },
    addFiles,
    replaceFiles: (topic, replacement) => replaceFiles(database, topic, replacement),
    removeFiles: async (topic, { below, acceptedBy, at }) => {
      let removal = query
        .updateTable('lake_files')
        .set({ removed_at: at, small: 0 })
        .where('organization_id', '=', topic.organizationId)
        .where('topic_name', '=', topic.topicName)
        .where('removed_at', 'is', null)
        .where('key', '<', below);
      if (acceptedBy !== undefined) removal = removal.where('max_ingested_at', '<=', acceptedBy);
      const { numUpdatedRows } = await removal.executeTakeFirst();
      return Number(numUpdatedRows);
    },
    crowdedHours: async ({ from, below, least, limit }) => {
      const rows = await query
        .selectFrom('lake_files')
        .select(['organization_id', 'topic_name', 'hour'])
        .select(({ fn }) => fn.countAll<number>().as('files'))
        .where('small', '=', 1)
        .where('hour', '>=', from)
        .where('hour', '<', below)
        .groupBy(['organization_id', 'topic_name', 'hour'])
        .having(({ fn }) => fn.countAll<number>(), '>=', least)
        .orderBy(({ fn }) => fn.countAll<number>(), 'desc')
        .limit(limit)
        .execute();
      return rows.map((row) => ({
        organizationId: row.organization_id,
        topicName: row.topic_name,
        hour: row.hour,
        files: Number(row.files),
      }));
    },
    smallFiles: async (topic, hour, limit) => {
      const rows = await query
        .selectFrom('lake_files')
        .select(fileColumns)
        .where('small', '=', 1)
        .where('organization_id', '=', topic.organizationId)
        .where('topic_name', '=', topic.topicName)
        .where('hour', '=', hour)
        .orderBy('bytes')
        .orderBy('key')
        .limit(limit)
        .execute();
      return rows.map(fileOf);
    },
    settleFiles: async (topic, keys) => {
      for (const some of chunks(keys)) {
        await query
          .updateTable('lake_files')
          .set({ small: 0 })
          .where('organization_id', '=', topic.organizationId)
          .where('topic_name', '=', topic.topicName)
          .where('key', 'in', some)
          .execute();
      }
    },
    layouts: (topic, ids) => readLayouts(query, topic, ids),
    removedFiles: async (before, limit) => {
      const rows = await query
        .selectFrom('lake_files')
        .select(['organization_id', 'topic_name', 'key'])
        .where('removed_at', 'is not', null)
        .where('removed_at', '<', before)
        .orderBy('removed_at')
        .limit(limit)
        .execute();
      return rows.map((row) => ({
        organizationId: row.organization_id,
        topicName: row.topic_name,
        key: row.key,
      }));
    },
    forgetFiles: async (files) => {
      for (const { organizationId, topicName, key } of files) {
        await query
          .deleteFrom('lake_files')
          .where('organization_id', '=', organizationId)
          .where('topic_name', '=', topicName)
          .where('key', '=', key)
          .where('removed_at', 'is not', null)
          .execute();
      }
    },
    known: async (organizationName, topicName, keys) => {
      const found = new Set<string>();
      for (const some of chunks(keys)) {
        const rows = await query
          .selectFrom('organizations')
          .innerJoin('lake_files', 'lake_files.organization_id', 'organizations.id')
          .select('lake_files.key')
          .where('organizations.name_lower', '=', organizationName.toLowerCase())
          .where('lake_files.topic_name', '=', topicName)
          .where('lake_files.key', 'in', some)
          .execute();
        for (const row of rows) found.add(row.key);
      }
      return found;
    },
    dropTable: (topic) => dropTable(database, topic),
    schema: (topic) => readSchema(query, topic),
    schemas: async (topic) => {
      const rows = await schemaVersions(query, topic).orderBy('version').execute();
      return rows.map(schemaOf);
    },
    changeTable: (topic, change) => changeTable(database, topic, change),
    organizationName: async (organizationId) => {
      const row = await query
        .selectFrom('organizations')
        .select('name')
        .where('id', '=', organizationId)
        .executeTakeFirst();
      return row?.name;
    },
  };
}

function live(queries: Queries, { organizationId, topicName }: TopicAddress) {
  return queries
    .selectFrom('lake_files')
    .select(fileColumns)
    .where('organization_id', '=', organizationId)
    .where('topic_name', '=', topicName)
    .where('removed_at', 'is', null);
}

async function readLayouts(
  queries: Queries,
  { organizationId, topicName }: TopicAddress,
  ids: readonly string[],
): Promise<Map<string, readonly Column[]>> {
  const layouts = new Map<string, readonly Column[]>();
  for (const some of chunks(ids)) {
    const rows = await queries
      .selectFrom('lake_layouts')
      .select(['id', 'columns'])
      .where('organization_id', '=', organizationId)
      .where('topic_name', '=', topicName)
      .where('id', 'in', some)
      .execute();
    for (const row of rows) layouts.set(row.id, JSON.parse(row.columns));
  }
  return layouts;
}

async function addFiles(transaction: Queries, topic: TopicAddress, addition: Addition): Promise<void> {
  const { base, columns, nextColumnId, files, at } = addition;
  const isSame = base.version > 0 && sameColumns(base.columns, columns);
  const present = (await readTable(transaction, topic)) ?? newTable(topic);
  // Files of columns that the table had before can be added whatever it has become; new columns cannot.
  if (!isSame || present.version === 0) {
    if (present.version !== base.version) throw new TableChangedError('The table was changed.');
    await writeTable(transaction, { ...present, columns, nextColumnId, version: present.version + 1 });
  }
  await insertFiles(transaction, topic, { columns, files, at });
}

async function insertFiles(
  transaction: Queries,
  { organizationId, topicName }: TopicAddress,
  { columns, files, at }: { columns: readonly Column[]; files: readonly NewFile[]; at: number },
): Promise<void> {
  const text = JSON.stringify(columns);
  const layoutId = createHash('sha256').update(text).digest('base64url').slice(0, 22);
  await transaction
    .insertInto('lake_layouts')
    .values({ organization_id: organizationId, topic_name: topicName, id: layoutId, columns: text })
    .onConflict((conflict) => conflict.columns(['organization_id', 'topic_name', 'id']).doNothing())
    .execute();
  const rows = files.map(
    (file): LakeFileRow => ({
      organization_id: organizationId,
      topic_name: topicName,
      key: file.key,
      hour: file.hour,
      layout_id: layoutId,
      row_count: file.rows,
      bytes: file.bytes,
      rescued: file.rescued,
      min_ingested_at: file.minIngestedAt,
      max_ingested_at: file.maxIngestedAt,
      created_at: at,
      removed_at: null,
      small: file.bytes < smallBytes ? 1 : 0,
    }),
  );
  for (const some of chunks(rows)) await transaction.insertInto('lake_files').values(some).execute();
}

async function replaceFiles(
  database: Database,
  topic: TopicAddress,
  { inputs, output, columns, at }: Replacement,
): Promise<boolean> {
  return database.transaction(async (transaction) => {
    const present = await transaction
      .selectFrom('lake_files')
      .select('key')
      .where('organization_id', '=', topic.organizationId)
      .where('topic_name', '=', topic.topicName)
      .where('removed_at', 'is', null)
      .where('key', 'in', [...inputs])
      .execute();
    if (present.length !== inputs.length) return false;
    await transaction
      .updateTable('lake_files')
      .set({ removed_at: at, small: 0 })
      .where('organization_id', '=', topic.organizationId)
      .where('topic_name', '=', topic.topicName)
      .where('key', 'in', [...inputs])
      .execute();
    await insertFiles(transaction, topic, { columns, files: [output], at });
    return true;
  });
}

function fileOf(row: Pick<LakeFileRow, (typeof fileColumns)[number]>): LakeFile {
  return {
    key: row.key,
    hour: row.hour,
    layoutId: row.layout_id,
    rows: row.row_count,
    bytes: row.bytes,
    rescued: row.rescued,
    minIngestedAt: row.min_ingested_at,
    maxIngestedAt: row.max_ingested_at,
    createdAt: row.created_at,
  };
}

function* chunks<T>(values: readonly T[]): Generator<T[]> {
  for (let start = 0; start < values.length; start += rowsAtOnce) {
    yield values.slice(start, start + rowsAtOnce);
  }
}
