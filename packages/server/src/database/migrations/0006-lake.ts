import { sql } from 'kysely';
import type { Migration, MigrationStep } from './migration.ts';

/** The catalog of the lake: tables, the files they are made of, and the schemas people gave them. */
export const lake: Migration = {
  name: '0006-lake',
  async up(step) {
    await createTables(step);
    await createLayouts(step);
    await createFiles(step);
    await createSchemas(step);
  },
};

async function createTables({ createTable, text, bigint }: MigrationStep): Promise<void> {
  await createTable('lake_tables')
    .addColumn('organization_id', text, (column) =>
      column.notNull().references('organizations.id').onDelete('cascade'),
    )
    .addColumn('topic_name', text, (column) => column.notNull())
    .addColumn('version', bigint, (column) => column.notNull())
    .addColumn('next_column_id', bigint, (column) => column.notNull())
    .addColumn('fixed', 'integer', (column) => column.notNull())
    .addColumn('columns', text, (column) => column.notNull())
    .addPrimaryKeyConstraint('lake_tables_key', ['organization_id', 'topic_name'])
    .execute();
}

async function createLayouts({ createTable, text }: MigrationStep): Promise<void> {
  await createTable('lake_layouts')
    .addColumn('organization_id', text, (column) =>
      column.notNull().references('organizations.id').onDelete('cascade'),
    )
    .addColumn('topic_name', text, (column) => column.notNull())
    .addColumn('id', text, (column) => column.notNull())
    .addColumn('columns', text, (column) => column.notNull())
    .addPrimaryKeyConstraint('lake_layouts_key', ['organization_id', 'topic_name', 'id'])
    .execute();
}

async function createFiles({ createTable, transaction, text, bigint }: MigrationStep): Promise<void> {
  await createTable('lake_files')
    .addColumn('organization_id', text, (column) =>
      column.notNull().references('organizations.id').onDelete('cascade'),
    )
    .addColumn('topic_name', text, (column) => column.notNull())
    .addColumn('key', text, (column) => column.notNull())
    .addColumn('hour', bigint, (column) => column.notNull())
    .addColumn('layout_id', text, (column) => column.notNull())
    .addColumn('row_count', bigint, (column) => column.notNull())
    .addColumn('bytes', bigint, (column) => column.notNull())
    .addColumn('rescued', bigint, (column) => column.notNull())
    .addColumn('min_ingested_at', bigint, (column) => column.notNull())
    .addColumn('max_ingested_at', bigint, (column) => column.notNull())
    .addColumn('created_at', bigint, (column) => column.notNull())
    .addColumn('removed_at', bigint)
    .addColumn('small', 'integer', (column) => column.notNull())
    .addPrimaryKeyConstraint('lake_files_key', ['organization_id', 'topic_name', 'key'])
    .execute();
  const { schema } = transaction;
  // A page of files is a range of this index, whatever was removed and however many files there are.
  await schema
    .createIndex('lake_files_live')
    .on('lake_files')
    .columns(['organization_id', 'topic_name', 'key'])
    .where(sql.ref('removed_at'), 'is', null)
    .execute();
  await schema
    .createIndex('lake_files_removed')
    .on('lake_files')
    .column('removed_at')
    .where(sql.ref('removed_at'), 'is not', null)
    .execute();
  await schema
    .createIndex('lake_files_small')
    .on('lake_files')
    .columns(['small', 'organization_id', 'topic_name', 'hour'])
    .execute();
}

async function createSchemas({ createTable, text, bigint }: MigrationStep): Promise<void> {
  await createTable('lake_schemas')
    .addColumn('organization_id', text, (column) =>
      column.notNull().references('organizations.id').onDelete('cascade'),
    )
    .addColumn('topic_name', text, (column) => column.notNull())
    .addColumn('version', bigint, (column) => column.notNull())
    .addColumn('origin', text, (column) => column.notNull())
    .addColumn('created_at', bigint, (column) => column.notNull())
    .addColumn('schema', text, (column) => column.notNull())
    .addPrimaryKeyConstraint('lake_schemas_key', ['organization_id', 'topic_name', 'version'])
    .execute();
}
