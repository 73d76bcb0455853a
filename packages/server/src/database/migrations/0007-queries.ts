import type { Migration } from './migration.ts';

/** The SQL queries of each organization: what was asked, how it went, and where its result lies. */
export const queries: Migration = {
  name: '0007-queries',
  async up({ createTable, transaction, text, bigint }) {
    await createTable('queries')
      .addColumn('organization_id', text, (column) =>
        column.notNull().references('organizations.id').onDelete('cascade'),
      )
      .addColumn('id', text, (column) => column.notNull())
      .addColumn('sql', text, (column) => column.notNull())
      .addColumn('state', text, (column) => column.notNull())
      .addColumn('username', text)
      .addColumn('node_id', text, (column) => column.notNull())
      .addColumn('alive_until', bigint, (column) => column.notNull())
      .addColumn('submitted_at', bigint, (column) => column.notNull())
      .addColumn('completed_at', bigint)
      .addColumn('bytes_scanned', bigint)
      .addColumn('execution_milliseconds', bigint)
      .addColumn('error', text)
      .addColumn('columns', text)
      .addColumn('rows_bytes', bigint)
      .addPrimaryKeyConstraint('queries_key', ['organization_id', 'id'])
      .execute();
    const { schema } = transaction;
    await schema
      .createIndex('queries_history')
      .on('queries')
      .columns(['organization_id', 'submitted_at', 'id'])
      .execute();
    await schema.createIndex('queries_state').on('queries').columns(['state', 'alive_until']).execute();
    await schema.createIndex('queries_age').on('queries').column('submitted_at').execute();
  },
};
