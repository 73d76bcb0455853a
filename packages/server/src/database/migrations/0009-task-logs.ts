import type { Migration } from './migration.ts';

/** What tasks write: a head for each task, and its lines in chunks. */
export const taskLogs: Migration = {
  name: '0009-task-logs',
  async up({ createTable, text, bigint }) {
    await createTable('task_logs')
      .addColumn('organization_id', text, (column) => column.notNull())
      .addColumn('task_id', text, (column) => column.notNull())
      .addColumn('last_position', bigint, (column) => column.notNull())
      .addColumn('lines', bigint, (column) => column.notNull())
      .addColumn('bytes', bigint, (column) => column.notNull())
      .addPrimaryKeyConstraint('task_logs_key', ['organization_id', 'task_id'])
      .execute();
    await createTable('task_log_chunks')
      .addColumn('organization_id', text, (column) => column.notNull())
      .addColumn('task_id', text, (column) => column.notNull())
      .addColumn('last_position', bigint, (column) => column.notNull())
      .addColumn('lines', 'integer', (column) => column.notNull())
      .addColumn('bytes', 'integer', (column) => column.notNull())
      .addColumn('newest_time', bigint, (column) => column.notNull())
      .addColumn('content', text, (column) => column.notNull())
      .addPrimaryKeyConstraint('task_log_chunks_key', ['organization_id', 'task_id', 'last_position'])
      .addForeignKeyConstraint(
        'task_log_chunks_log',
        ['organization_id', 'task_id'],
        'task_logs',
        ['organization_id', 'task_id'],
        (key) => key.onDelete('cascade'),
      )
      .execute();
  },
};
