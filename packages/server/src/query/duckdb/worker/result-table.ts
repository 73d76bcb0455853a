import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type DuckDBAppender,
  type DuckDBConnection,
  type DuckDBDataChunk,
  DuckDBInstance,
  type DuckDBType,
} from '@duckdb/node-api';
import type { RunnerOptions } from '../protocol.ts';
import { isNested, quotedName, quotedText, sqlTypeName, typeName } from './type-names.ts';

interface Column {
  readonly name: string;
  /** The name in files, where no two columns may have the same. */
  readonly distinctName: string;
  readonly type: string;
}

/** How many chunks of up to 2,048 rows are taken between two looks at how large the result has become. */
const chunksBetweenLooks = 32;

/** Takes a result in as it comes and writes it down in two forms: text by the row, and Parquet. */
export class ResultTable {
  readonly #connection: DuckDBConnection;
  readonly #mostBytes: number;
  #names: readonly string[] = [];
  #types: readonly DuckDBType[] = [];
  #appender: DuckDBAppender | undefined;
  #chunks = 0;
  rows = 0;

  private constructor(connection: DuckDBConnection, mostBytes: number) {
    this.#connection = connection;
    this.#mostBytes = mostBytes;
  }

  static async open(options: RunnerOptions): Promise<ResultTable> {
    const instance = await DuckDBInstance.create(':memory:', {
      // The other engine has let go of its memory by the time that this one writes.
      memory_limit: `${options.memoryBytes}B`,
      threads: String(options.threads),
      temp_directory: join(options.scratch, 'result-temp'),
      max_temp_directory_size: `${options.resultBytes * 2}B`,
    });
    const connection = await instance.connect();
    await connection.run("set timezone = 'UTC'");
    return new ResultTable(connection, options.resultBytes);
  }

  get columns(): Column[] {
    const distinct = distinctNames(this.#names);
    return this.#types.map((type, index) => ({
      name: this.#names[index] ?? '',
      distinctName: distinct[index] ?? '',
      type: typeName(type),
    }));
  }

  async begin(names: readonly string[], types: readonly DuckDBType[]): Promise<this> {
    this.#names = names;
    this.#types = types;
    this.#chunks = 0;
    this.rows = 0;
    const columns = types.map((type, index) => `c${index} ${sqlTypeName(type)}`).join(', ');
    await this.#connection.run(`create or replace table result (${columns})`);
    this.#appender = await this.#connection.createAppender('result');
    return this;
  }

  /** Takes more rows; false when the result has become too large. */
  async append(chunk: DuckDBDataChunk): Promise<boolean> {
    this.#appender?.appendDataChunk(chunk);
    this.rows += chunk.rowCount;
    this.#chunks += 1;
    if (this.#chunks % chunksBetweenLooks !== 0) return true;
    this.#appender?.flushSync();
    const reader = await this.#connection.runAndReadAll(
      'select sum(memory_usage_bytes + temporary_storage_bytes) from duckdb_memory()',
    );
    return Number(reader.getRows()[0]?.[0] ?? 0) <= this.#mostBytes;
  }

  /** Writes the files; false when they are too large. */
  async write(folder: string): Promise<boolean> {
    this.#appender?.closeSync();
    this.#appender = undefined;
    const rows = join(folder, 'rows.ndjson');
    const texts = this.#types.map((type, index) => (isNested(type) ? `to_json(c${index})` : `c${index}`));
    const listed = texts.map((text) => `${text}::varchar`).join(', ');
    await this.#connection.run(
      `copy (select [${listed}] as r from result) to ${quotedText(rows)} (format json)`,
    );
    const parquet = join(folder, 'result.parquet');
    try {
      await this.#writeParquet(parquet, (type, index) => this.#parquetValue(type, index));
    } catch {
      // Some types have no form in Parquet: their text has.
      await this.#writeParquet(parquet, (_type, index) => `${texts[index]}::varchar`);
    }
    const sizes = await Promise.all([stat(rows), stat(parquet)]);
    return sizes.every(({ size }) => size <= this.#mostBytes);
  }

  interrupt(): void {
    this.#connection.interrupt();
  }

  async clear(): Promise<void> {
    this.#appender?.closeSync();
    this.#appender = undefined;
    await this.#connection.run('drop table if exists result');
  }

  async #writeParquet(
    path: string,
    writtenAs: (type: DuckDBType, index: number) => string | Promise<string>,
  ): Promise<void> {
    const names = distinctNames(this.#names);
    const values: string[] = [];
    for (const [index, type] of this.#types.entries()) {
      values.push(`${await writtenAs(type, index)} as ${quotedName(names[index] ?? '')}`);
    }
    await this.#connection.run(
      `copy (select ${values.join(', ')} from result) to ${quotedText(path)} (format parquet, compression zstd)`,
    );
  }

  /** Sums of integers are wider than any integer of Parquet, which would make them inexact. */
  async #parquetValue(type: DuckDBType, index: number): Promise<string> {
    const name = sqlTypeName(type);
    if (name !== 'hugeint' && name !== 'uhugeint') return `c${index}`;
    const decimal = `try_cast(c${index} as decimal(38, 0))`;
    const reader = await this.#connection.runAndReadAll(
      `select count(*) from result where c${index} is not null and ${decimal} is null`,
    );
    return Number(reader.getRows()[0]?.[0] ?? 0) === 0 ? decimal : `c${index}::varchar`;
  }
}

/** Names of which no two are the same, whatever their case. */
export function distinctNames(names: readonly string[]): string[] {
  const taken = new Set<string>();
  return names.map((name) => {
    let distinct = name;
    for (let count = 1; taken.has(distinct.toLowerCase()); count += 1) distinct = `${name}_${count}`;
    taken.add(distinct.toLowerCase());
    return distinct;
  });
}
