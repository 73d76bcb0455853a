import type { Migration, MigrationStep } from './migration.ts';

/** Who reads the event log, how far each has come, and what could not be handled. */
export const consumers: Migration = {
  name: '0004-consumers',
  async up(step) {
    await createConsumers(step);
    await createNodes(step);
    await createShares(step);
    await createParkedMessages(step);
    await createDeadLetters(step);
  },
};

async function createConsumers({ createTable, text, bigint }: MigrationStep): Promise<void> {
  await createTable('consumers')
    .addColumn('id', text, (column) => column.primaryKey().notNull())
    .addColumn('organization_id', text, (column) => column.notNull())
    .addColumn('created_at', bigint, (column) => column.notNull())
    .execute();
}

async function createNodes({ createTable, text, bigint }: MigrationStep): Promise<void> {
  await createTable('consumer_nodes')
    .addColumn('id', text, (column) => column.primaryKey().notNull())
    .addColumn('incarnation', text, (column) => column.notNull().unique())
    .addColumn('expires_at', bigint, (column) => column.notNull())
    .addColumn('registrations', bigint, (column) => column.notNull())
    .execute();
  await createTable('consumer_registrations')
    .addColumn('incarnation', text, (column) =>
      column.notNull().references('consumer_nodes.incarnation').onDelete('cascade'),
    )
    .addColumn('consumer_id', text, (column) => column.notNull())
    .addPrimaryKeyConstraint('consumer_registrations_key', ['incarnation', 'consumer_id'])
    .execute();
}

async function createShares({ createTable, transaction, text, bigint }: MigrationStep): Promise<void> {
  await createTable('consumer_shares')
    .addColumn('consumer_id', text, (column) => column.notNull())
    .addColumn('organization_id', text, (column) => column.notNull())
    .addColumn('topic_name', text, (column) => column.notNull())
    .addColumn('partition', 'integer', (column) => column.notNull())
    .addColumn('cursor', bigint, (column) => column.notNull())
    .addColumn('version', bigint, (column) => column.notNull())
    .addColumn('holder', text)
    .addPrimaryKeyConstraint('consumer_shares_key', ['consumer_id', 'topic_name', 'partition'])
    .execute();
  const { schema } = transaction;
  await schema
    .createIndex('consumer_shares_topic')
    .on('consumer_shares')
    .columns(['organization_id', 'topic_name'])
    .execute();
  await schema.createIndex('consumer_shares_holder').on('consumer_shares').column('holder').execute();
}

async function createParkedMessages({
  createTable,
  transaction,
  text,
  bigint,
}: MigrationStep): Promise<void> {
  await createTable('parked_messages')
    .addColumn('consumer_id', text, (column) => column.notNull())
    .addColumn('topic_name', text, (column) => column.notNull())
    .addColumn('partition', 'integer', (column) => column.notNull())
    .addColumn('record_offset', bigint, (column) => column.notNull())
    .addColumn('key', text, (column) => column.notNull())
    .addColumn('attempts', 'integer', (column) => column.notNull())
    .addColumn('next_attempt_at', bigint)
    .addColumn('error', text)
    .addColumn('record', text)
    .addPrimaryKeyConstraint('parked_messages_key', [
      'consumer_id',
      'topic_name',
      'partition',
      'record_offset',
    ])
    .execute();
  await transaction.schema
    .createIndex('parked_messages_order')
    .on('parked_messages')
    .columns(['consumer_id', 'topic_name', 'partition', 'key', 'record_offset'])
    .execute();
}

async function createDeadLetters({ createTable, transaction, text, bigint }: MigrationStep): Promise<void> {
  await createTable('dead_letters')
    .addColumn('consumer_id', text, (column) => column.notNull())
    .addColumn('id', text, (column) => column.notNull())
    .addColumn('organization_id', text, (column) => column.notNull())
    .addColumn('topic_name', text, (column) => column.notNull())
    .addColumn('partition', 'integer', (column) => column.notNull())
    .addColumn('record_offset', bigint, (column) => column.notNull())
    .addColumn('attempts', 'integer', (column) => column.notNull())
    .addColumn('error', text, (column) => column.notNull())
    .addColumn('failed_at', bigint, (column) => column.notNull())
    .addColumn('redriven', 'integer', (column) => column.notNull())
    .addColumn('bytes', 'integer', (column) => column.notNull())
    .addColumn('record', text, (column) => column.notNull())
    .addPrimaryKeyConstraint('dead_letters_key', ['consumer_id', 'id'])
    .addUniqueConstraint('dead_letters_record', ['consumer_id', 'topic_name', 'partition', 'record_offset'])
    .execute();
  await transaction.schema
    .createIndex('dead_letters_redriven')
    .on('dead_letters')
    .columns(['consumer_id', 'redriven', 'topic_name', 'partition', 'record_offset'])
    .execute();
}
