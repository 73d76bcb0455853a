import { sql } from 'kysely';
import type { Migration } from './migration.ts';

/** Keyed entries of organizations. */
export const state: Migration = {
  name: '0003-state',
  async up({ createTable, transaction, text, bigint }) {
    await createTable('state_entries')
      .addColumn('organization_id', text, (column) =>
        column.notNull().references('organizations.id').onDelete('cascade'),
      )
      .addColumn('merged_key', text, (column) => column.notNull())
      .addColumn('version', bigint, (column) => column.notNull())
      .addColumn('expires_at', bigint)
      .addColumn('updated_at', bigint, (column) => column.notNull())
      .addColumn('key_parts', text, (column) => column.notNull())
      // Last, because it may be long: SQLite reads what stands before it without reading through it.
      .addColumn('attributes', text, (column) => column.notNull())
      .addPrimaryKeyConstraint('state_entries_key', ['organization_id', 'merged_key'])
      .execute();
    await transaction.schema
      .createIndex('state_entries_expiry')
      .on('state_entries')
      .column('expires_at')
      .where(sql.ref('expires_at'), 'is not', null)
      .execute();
  },
};
