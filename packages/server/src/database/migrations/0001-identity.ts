import { sql } from 'kysely';
import type { Migration, MigrationStep } from './migration.ts';

/** Accounts, what proves who someone is, and the limits on trying. */
export const identity: Migration = {
  name: '0001-identity',
  async up(step) {
    await createAccounts(step);
    await createOneTimeCodes(step);
    await createSessions(step);
    await createKeysAndSecrets(step);
    await createAttempts(step);
  },
};

async function createAccounts({ createTable, transaction, text, bigint }: MigrationStep): Promise<void> {
  await createTable('accounts')
    .addColumn('id', text, (column) => column.primaryKey().notNull())
    .addColumn('username', text, (column) => column.notNull())
    .addColumn('username_lower', text, (column) => column.notNull().unique())
    .addColumn('email', text, (column) => column.notNull())
    .addColumn('email_lower', text, (column) => column.notNull())
    .addColumn('password_hash', text, (column) => column.notNull())
    .addColumn('confirmed_at', bigint)
    .addColumn('must_change_password', 'integer', (column) => column.notNull())
    .addColumn('temporary_password_expires_at', bigint)
    .addColumn('tos_agreed_at', bigint, (column) => column.notNull())
    .addColumn('marketing_agreed', 'integer', (column) => column.notNull())
    .addColumn('totp_secret', text)
    .addColumn('totp_enabled_at', bigint)
    .addColumn('totp_last_step', bigint)
    .addColumn('totp_pending_secret', text)
    .addColumn('created_at', bigint, (column) => column.notNull())
    .execute();
  await transaction.schema.createIndex('accounts_email').on('accounts').column('email_lower').execute();
  await transaction.schema
    .createIndex('accounts_confirmed_email')
    .unique()
    .on('accounts')
    .column('email_lower')
    .where(sql.ref('confirmed_at'), 'is not', null)
    .execute();
}

async function createOneTimeCodes({ createTable, text, bigint }: MigrationStep): Promise<void> {
  await createTable('recovery_codes')
    .addColumn('account_id', text, (column) => column.notNull().references('accounts.id').onDelete('cascade'))
    .addColumn('code_hash', text, (column) => column.notNull())
    .addPrimaryKeyConstraint('recovery_codes_key', ['account_id', 'code_hash'])
    .execute();
  await createTable('mailed_codes')
    .addColumn('account_id', text, (column) => column.notNull().references('accounts.id').onDelete('cascade'))
    .addColumn('purpose', text, (column) => column.notNull())
    .addColumn('code_hash', text, (column) => column.notNull())
    .addColumn('expires_at', bigint, (column) => column.notNull())
    .addColumn('tries_left', 'integer', (column) => column.notNull())
    .addPrimaryKeyConstraint('mailed_codes_key', ['account_id', 'purpose'])
    .execute();
}

async function createSessions({ createTable, transaction, text, bigint }: MigrationStep): Promise<void> {
  const { schema } = transaction;
  await createTable('challenges')
    .addColumn('id_hash', text, (column) => column.primaryKey().notNull())
    .addColumn('account_id', text, (column) => column.notNull().references('accounts.id').onDelete('cascade'))
    .addColumn('kind', text, (column) => column.notNull())
    .addColumn('tries_left', 'integer', (column) => column.notNull())
    .addColumn('expires_at', bigint, (column) => column.notNull())
    .execute();
  await schema.createIndex('challenges_account').on('challenges').column('account_id').execute();
  await schema.createIndex('challenges_expiry').on('challenges').column('expires_at').execute();
  await createTable('sessions')
    .addColumn('id', text, (column) => column.primaryKey().notNull())
    .addColumn('account_id', text, (column) => column.notNull().references('accounts.id').onDelete('cascade'))
    .addColumn('created_at', bigint, (column) => column.notNull())
    .addColumn('expires_at', bigint, (column) => column.notNull())
    .addColumn('last_used_at', bigint, (column) => column.notNull())
    .execute();
  await schema.createIndex('sessions_account').on('sessions').column('account_id').execute();
  await schema.createIndex('sessions_expiry').on('sessions').column('expires_at').execute();
  await createTable('refresh_tokens')
    .addColumn('token_hash', text, (column) => column.primaryKey().notNull())
    .addColumn('session_id', text, (column) => column.notNull().references('sessions.id').onDelete('cascade'))
    .addColumn('created_at', bigint, (column) => column.notNull())
    .addColumn('rotated_at', bigint)
    .execute();
  await schema.createIndex('refresh_tokens_session').on('refresh_tokens').column('session_id').execute();
}

async function createKeysAndSecrets({ createTable, text, bigint }: MigrationStep): Promise<void> {
  await createTable('signing_keys')
    .addColumn('id', text, (column) => column.primaryKey().notNull())
    .addColumn('generation', 'integer', (column) => column.notNull().unique())
    .addColumn('public_jwk', text, (column) => column.notNull())
    .addColumn('private_jwk', text, (column) => column.notNull())
    .addColumn('created_at', bigint, (column) => column.notNull())
    .addColumn('retires_at', bigint, (column) => column.notNull())
    .addColumn('expires_at', bigint, (column) => column.notNull())
    .execute();
  await createTable('secrets')
    .addColumn('name', text, (column) => column.primaryKey().notNull())
    .addColumn('value', text, (column) => column.notNull())
    .addColumn('created_at', bigint, (column) => column.notNull())
    .execute();
}

async function createAttempts({ createTable, transaction, text, bigint }: MigrationStep): Promise<void> {
  await createTable('token_buckets')
    .addColumn('key', text, (column) => column.primaryKey().notNull())
    .addColumn('full_at', bigint, (column) => column.notNull())
    .execute();
  await transaction.schema.createIndex('token_buckets_full').on('token_buckets').column('full_at').execute();
  await createTable('known_addresses')
    .addColumn('account_id', text, (column) => column.notNull().references('accounts.id').onDelete('cascade'))
    .addColumn('address', text, (column) => column.notNull())
    .addColumn('last_success_at', bigint, (column) => column.notNull())
    .addPrimaryKeyConstraint('known_addresses_key', ['account_id', 'address'])
    .execute();
}
