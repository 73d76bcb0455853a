import type { Migration } from './migration.ts';

/** Tasks, their versions, and the uploads and deployments that make versions. */
export const tasks: Migration = {
  name: '0008-tasks',
  async up({ createTable, transaction, text, bigint }) {
    await createTable('tasks')
      .addColumn('organization_id', text, (column) =>
        column.notNull().references('organizations.id').onDelete('cascade'),
      )
      .addColumn('task_id', text, (column) => column.notNull())
      .addColumn('life', text, (column) => column.notNull())
      .addColumn('revision', bigint, (column) => column.notNull())
      .addColumn('phase', text, (column) => column.notNull())
      .addColumn('active_version', bigint)
      .addColumn('last_version', bigint, (column) => column.notNull())
      .addColumn('update_status', text)
      .addColumn('update_reason', text)
      .addColumn('updating_node', text)
      .addColumn('updated_at', bigint, (column) => column.notNull())
      .addColumn('created_at', bigint, (column) => column.notNull())
      .addPrimaryKeyConstraint('tasks_key', ['organization_id', 'task_id'])
      .execute();
    await createTable('task_versions')
      .addColumn('organization_id', text, (column) => column.notNull())
      .addColumn('task_id', text, (column) => column.notNull())
      .addColumn('version', bigint, (column) => column.notNull())
      .addColumn('session_id', text, (column) => column.notNull())
      .addColumn('description', text, (column) => column.notNull())
      .addColumn('key_id', text, (column) => column.notNull())
      .addColumn('sealed_key', text, (column) => column.notNull())
      .addColumn('created_at', bigint, (column) => column.notNull())
      .addColumn('settings', text, (column) => column.notNull())
      .addPrimaryKeyConstraint('task_versions_key', ['organization_id', 'task_id', 'version'])
      .addForeignKeyConstraint(
        'task_versions_task',
        ['organization_id', 'task_id'],
        'tasks',
        ['organization_id', 'task_id'],
        (constraint) => constraint.onDelete('cascade'),
      )
      .execute();
    await createTable('task_deployments')
      .addColumn('session_id', text, (column) => column.notNull().primaryKey())
      .addColumn('organization_id', text, (column) =>
        column.notNull().references('organizations.id').onDelete('cascade'),
      )
      .addColumn('task_id', text, (column) => column.notNull())
      .addColumn('status', text, (column) => column.notNull())
      .addColumn('error', text)
      .addColumn('version', bigint)
      .addColumn('description', text)
      .addColumn('node', text)
      .addColumn('key_id', text)
      .addColumn('changed_at', bigint, (column) => column.notNull())
      .execute();
    await transaction.schema
      .createIndex('task_deployments_task')
      .on('task_deployments')
      .columns(['organization_id', 'task_id'])
      .execute();
    await transaction.schema
      .createIndex('task_deployments_age')
      .on('task_deployments')
      .columns(['status', 'changed_at'])
      .execute();
  },
};
