import type { Migration } from './migration.ts';

/** The topic definitions of each organization, as one document with one version. */
export const topics: Migration = {
  name: '0005-topics',
  async up({ createTable, text, bigint }) {
    await createTable('topic_definitions')
      .addColumn('organization_id', text, (column) =>
        column.primaryKey().notNull().references('organizations.id').onDelete('cascade'),
      )
      .addColumn('version', bigint, (column) => column.notNull())
      .addColumn('document', text, (column) => column.notNull())
      .execute();
  },
};
