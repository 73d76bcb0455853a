import type { Migration, MigrationStep } from './migration.ts';

/** Organizations, who belongs to them, their keys and their limits. */
export const organizations: Migration = {
  name: '0002-organizations',
  async up(step) {
    await createOrganizations(step);
    await createMembers(step);
    await createApiKeys(step);
  },
};

async function createOrganizations({ createTable, text, bigint }: MigrationStep): Promise<void> {
  await createTable('organizations')
    .addColumn('id', text, (column) => column.primaryKey().notNull())
    .addColumn('name', text, (column) => column.notNull())
    .addColumn('name_lower', text, (column) => column.notNull().unique())
    .addColumn('rate_limit_level', text, (column) => column.notNull())
    .addColumn('created_at', bigint, (column) => column.notNull())
    .addColumn('created_by', text, (column) => column.notNull())
    .execute();
}

async function createMembers({ createTable, transaction, text, bigint }: MigrationStep): Promise<void> {
  await createTable('members')
    .addColumn('organization_id', text, (column) =>
      column.notNull().references('organizations.id').onDelete('cascade'),
    )
    .addColumn('account_id', text, (column) => column.notNull().references('accounts.id').onDelete('cascade'))
    .addColumn('role', text, (column) => column.notNull())
    .addColumn('joined_at', bigint, (column) => column.notNull())
    .addPrimaryKeyConstraint('members_key', ['organization_id', 'account_id'])
    .execute();
  await transaction.schema.createIndex('members_account').on('members').column('account_id').execute();
}

async function createApiKeys({ createTable, transaction, text, bigint }: MigrationStep): Promise<void> {
  await createTable('api_keys')
    .addColumn('id', text, (column) => column.primaryKey().notNull())
    .addColumn('organization_id', text, (column) =>
      column.notNull().references('organizations.id').onDelete('cascade'),
    )
    .addColumn('secret_hash', text, (column) => column.notNull().unique())
    .addColumn('description', text, (column) => column.notNull())
    .addColumn('owner_type', text, (column) => column.notNull())
    .addColumn('owner_account_id', text, (column) => column.references('accounts.id').onDelete('cascade'))
    .addColumn('owner_username', text, (column) => column.notNull())
    .addColumn('revocable', 'integer', (column) => column.notNull())
    .addColumn('queue_whitelist', text)
    .addColumn('expires_at', bigint)
    .addColumn('created_at', bigint, (column) => column.notNull())
    .addColumn('last_used_at', bigint)
    .addColumn('revoked_at', bigint)
    .execute();
  await transaction.schema
    .createIndex('api_keys_organization')
    .on('api_keys')
    .columns(['organization_id', 'created_at'])
    .execute();
  await transaction.schema.createIndex('api_keys_owner').on('api_keys').column('owner_account_id').execute();
}
