import { resolve, sep } from 'node:path';
import type { Clock } from '../platform/clock.ts';
import type { Database } from './database.ts';
import { openSqliteDatabase } from './sqlite/sqlite-database.ts';

export interface OpenDatabaseOptions {
  /**
   * `postgres://...` or `postgresql://...` for PostgreSQL; `sqlite:` and a file, relative to the data
   * directory, for SQLite, which is also used, with the file `millrace.db`, when nothing is given.
   */
  readonly url?: string | undefined;
  readonly dataDirectory: string;
  readonly clock: Clock;
  /** The disk failed under a change: the process must end without acknowledging anything more. */
  onFatal(error: Error): void;
}

/** Opens the database that the URL names and brings it to the last migration. */
export async function openDatabase(options: OpenDatabaseOptions): Promise<Database> {
  const { url = 'sqlite:', dataDirectory, clock, onFatal } = options;
  // No message here repeats the URL, because it may hold a password.
  if (url.startsWith('sqlite:')) {
    const file = url.slice('sqlite:'.length).replace(/^\/\/(?=\/)/, '') || 'millrace.db';
    const path = resolve(dataDirectory, file);
    // The lock on the data directory is what keeps a second process off the file.
    if (!path.startsWith(`${resolve(dataDirectory)}${sep}`)) {
      throw new Error('A sqlite: database URL must name a file inside the data directory');
    }
    try {
      return await openSqliteDatabase({ path, clock, onFatal });
    } catch (error) {
      throw new Error(`The database ${path} cannot be opened: ${reason(error)}`, { cause: error });
    }
  }
  if (!/^postgres(ql)?:\/\//.test(url)) {
    throw new Error('The database URL must begin with sqlite:, postgres:// or postgresql://');
  }
  if (!URL.canParse(url)) {
    throw new Error('The database URL is not a valid URL; are special characters of its password encoded?');
  }
  // Read only where it is used, like every engine that a laptop does without.
  const { openPostgresDatabase } = await import('./postgres/postgres-database.ts');
  try {
    return await openPostgresDatabase({ url, clock });
  } catch (error) {
    throw new Error(`The PostgreSQL database cannot be opened: ${reason(error)}`, { cause: error });
  }
}

function reason(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return error.errors.map(reason).join('; ');
  return error instanceof Error ? error.message : String(error);
}
