import { type CreateTableBuilder, type RawBuilder, sql, type Transaction } from 'kysely';
import type { Database } from '../database.ts';
import type { Schema } from '../schema.ts';

/** One step of the schema. A published migration never changes; a new one follows it. */
export interface Migration {
  /** Sorts after the names of all earlier migrations. */
  readonly name: string;
  up(step: MigrationStep): Promise<void>;
}

/** What a migration builds with, so that it is written once for both engines. */
export interface MigrationStep {
  readonly transaction: Transaction<Schema>;
  /** A new table. On SQLite it is strict, because PostgreSQL holds to column types too. */
  createTable(name: string): CreateTableBuilder<string, never>;
  /** Text that compares by its bytes, as SQLite does, whatever the locale of a PostgreSQL database. */
  readonly text: RawBuilder<unknown>;
  /** An integer that may hold a time or any other safe JavaScript integer. */
  readonly bigint: 'bigint' | 'integer';
}

export function migrationStep(engine: Database['engine'], transaction: Transaction<Schema>): MigrationStep {
  if (engine === 'sqlite') {
    return {
      transaction,
      createTable: (name) => transaction.schema.createTable(name).modifyEnd(sql`strict`),
      text: sql`text`,
      bigint: 'integer',
    };
  }
  return {
    transaction,
    createTable: (name) => transaction.schema.createTable(name),
    text: sql`text collate "C"`,
    bigint: 'bigint',
  };
}
