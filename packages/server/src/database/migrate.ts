import type { Kysely, Transaction } from 'kysely';
import type { Clock } from '../platform/clock.ts';
import type { Database } from './database.ts';
import { type Migration, migrationStep } from './migrations/migration.ts';
import type { Schema } from './schema.ts';

export interface MigrateOptions {
  readonly engine: Database['engine'];
  readonly query: Kysely<Schema>;
  readonly migrations: readonly Migration[];
  readonly clock: Clock;
  /** Held until the end of the transaction, so that of several nodes starting at once only one migrates. */
  lock(transaction: Transaction<Schema>): Promise<void>;
}

/**
 * Brings the database to the last migration of this build, each migration in a transaction of its own.
 * Throws when the database holds a migration that this build does not know, because a newer version has
 * then written rows this one would misread.
 */
export async function migrate(options: MigrateOptions): Promise<void> {
  for (const _ of [...options.migrations, 'and once more to see that none is left']) {
    if (!(await options.query.transaction().execute((transaction) => applyNext(options, transaction))))
      return;
  }
}

/** Applies the first migration that is missing; false when none is. */
async function applyNext(options: MigrateOptions, transaction: Transaction<Schema>): Promise<boolean> {
  await options.lock(transaction);
  const step = migrationStep(options.engine, transaction);
  await step
    .createTable('migrations')
    .ifNotExists()
    .addColumn('name', step.text, (column) => column.primaryKey().notNull())
    .addColumn('applied_at', step.bigint, (column) => column.notNull())
    .execute();
  const rows = await transaction.selectFrom('migrations').select('name').orderBy('name').execute();
  const applied = new Set(rows.map((row) => row.name));
  const known = new Set(options.migrations.map((migration) => migration.name));
  const unknown = [...applied].find((name) => !known.has(name));
  if (unknown !== undefined) {
    throw new Error(
      `The database holds the migration "${unknown}", which this version of Millrace does not know. ` +
        'A newer version has used it: start that version, or restore a backup from before it.',
    );
  }
  const next = options.migrations.find((migration) => !applied.has(migration.name));
  if (next === undefined) return false;
  await next.up(step);
  await transaction
    .insertInto('migrations')
    .values({ name: next.name, applied_at: options.clock.now() })
    .execute();
  return true;
}
