import { mkdirSync } from 'node:fs';
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { quoteLiteral } from '../columns.ts';

export interface EngineOptions {
  readonly directories: readonly string[];
  readonly temporary: string;
  readonly memoryMegabytes: number;
  readonly threads: number;
}

/**
 * What the engine sets aside for each column while a file is written: vectors, pages, dictionaries. Most of
 * it is never touched, so that the memory of the process grows by a fraction of this.
 */
const columnMegabytes = 0.35;

/**
 * Does some work with DuckDB: no extensions, no files but those of the lake, no way to change that. What it
 * is given is our own SQL, so this is a second lock on a door that should be shut already. Each piece of
 * work has an engine of its own, which costs milliseconds, so that memory is given back and a very wide
 * table can have the memory it needs.
 */
export async function withEngine<Result>(
  options: EngineOptions,
  columns: number,
  work: (connection: DuckDBConnection) => Promise<Result>,
): Promise<Result> {
  mkdirSync(options.temporary, { recursive: true });
  const instance = await DuckDBInstance.create(':memory:', {
    threads: String(options.threads),
    memory_limit: `${options.memoryMegabytes + Math.ceil(columns * columnMegabytes)}MB`,
    temp_directory: options.temporary,
    autoinstall_known_extensions: 'false',
    autoload_known_extensions: 'false',
    allow_community_extensions: 'false',
  });
  try {
    const connection = await instance.connect();
    try {
      await lock(connection, [...options.directories, options.temporary]);
      return await work(connection);
    } finally {
      connection.closeSync();
    }
  } finally {
    instance.closeSync();
  }
}

async function lock(connection: DuckDBConnection, directories: readonly string[]): Promise<void> {
  await connection.run(`SET TimeZone = 'UTC'`);
  const allowed = directories.map((directory) => quoteLiteral(`${directory}/`));
  await connection.run(`SET allowed_directories = [${allowed.join(', ')}]`);
  await connection.run('SET enable_external_access = false');
  await connection.run('SET lock_configuration = true');
}

/** A statement of one row of numbers; null where the value is. */
export async function readNumbers(connection: DuckDBConnection, sql: string): Promise<(number | null)[]> {
  const reader = await connection.runAndReadAll(sql);
  const [row] = reader.getRows();
  return (row ?? []).map((value) => (value === null ? null : Number(value)));
}
