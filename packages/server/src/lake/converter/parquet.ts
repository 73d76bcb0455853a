import { statSync } from 'node:fs';
import type { DuckDBConnection } from '@duckdb/node-api';
import {
  type Column,
  type ColumnType,
  countColumns,
  fieldIdsSql,
  quoteIdentifier,
  quoteLiteral,
  sqlType,
  systemColumns,
} from '../columns.ts';
import { readNumbers } from './engine.ts';
import type { MergedFile } from './protocol.ts';
import { hasTimestamp } from './shape.ts';

const rowGroupRows = 122_880;
const smallestRowGroupRows = 2_048;

/** What a row group may take in memory while it is gathered, about. */
const rowGroupBytes = 48 << 20;
const columnBytes = 12;

/** Tables with more columns than this go without dictionaries, each of which takes a mebibyte. */
const wideColumns = 250;

/** A scratch file of lines, and how to read it. */
export interface Lines {
  readonly path: string;
  readonly columns: readonly Column[];
  /** Whether times with a zone other than UTC are in it. */
  readonly offsets: boolean;
  readonly longestLine: number;
}

/** Writes what a SELECT gives to a Parquet file whose columns have their ids. */
export async function writeParquet(
  connection: DuckDBConnection,
  select: string,
  columns: readonly Column[],
  output: string,
): Promise<void> {
  const all = [...columns, ...systemColumns];
  const options = [
    'FORMAT parquet',
    'COMPRESSION zstd',
    `ROW_GROUP_SIZE ${rowGroupSize(all)}`,
    `FIELD_IDS ${fieldIdsSql(all)}`,
  ];
  if (countColumns(all) > wideColumns)
    options.push('DICTIONARY_SIZE_LIMIT 1', 'STRING_DICTIONARY_PAGE_SIZE_LIMIT 4096');
  await connection.run(`COPY (${select}) TO ${quoteLiteral(output)} (${options.join(', ')})`);
}

function rowGroupSize(columns: readonly Column[]): number {
  const rows = Math.floor(rowGroupBytes / (countColumns(columns) * columnBytes));
  return Math.max(smallestRowGroupRows, Math.min(rowGroupRows, rows));
}

/** The SELECT that reads lines as the columns of a table, then the system's. */
export function linesSql({ path, columns, offsets, longestLine }: Lines): string {
  const types = [
    ...columns.map(({ name, type }) => `${quoteLiteral(name)}: ${quoteLiteral(readType(type, offsets))}`),
    `'_key': 'VARCHAR', '_id': 'VARCHAR', '_ingested_at': 'BIGINT', '_rescued': 'VARCHAR'`,
  ];
  const selected = [
    ...columns.map(({ name, type }) => {
      const column = quoteIdentifier(name);
      return offsets && hasTimestamp(type) ? `CAST(${column} AS ${sqlType(type)}) AS ${column}` : column;
    }),
    '_key',
    '_id',
    'make_timestamp(_ingested_at * 1000) AS _ingested_at',
    'CAST(_rescued AS JSON) AS _rescued',
  ];
  const options = [
    quoteLiteral(path),
    `columns = {${types.join(', ')}}`,
    `format = 'newline_delimited'`,
    `compression = 'uncompressed'`,
    `maximum_object_size = ${Math.max(1 << 20, longestLine + 1024)}`,
  ];
  return `SELECT ${selected.join(', ')} FROM read_json(${options.join(', ')})`;
}

/** The engine minds a zone only where it is asked for one; what it reads then is cast to UTC. */
function readType(type: ColumnType, offsets: boolean): string {
  if (!offsets || !hasTimestamp(type)) return sqlType(type);
  if (type.kind === 'list') return `${readType(type.element.type, offsets)}[]`;
  if (type.kind === 'struct') {
    const fields = type.fields.map(
      (field) => `${quoteIdentifier(field.name)} ${readType(field.type, offsets)}`,
    );
    return `STRUCT(${fields.join(', ')})`;
  }
  return 'TIMESTAMPTZ';
}

/** Merges what a SELECT over files gives into one file. */
export async function mergeFiles(
  connection: DuckDBConnection,
  select: string,
  columns: readonly Column[],
  output: string,
): Promise<MergedFile> {
  await writeParquet(connection, select, columns, output);
  const [rows, rescued, minIngestedAt, maxIngestedAt] = await readNumbers(
    connection,
    `SELECT count(*), count(_rescued), epoch_ms(min(_ingested_at)), epoch_ms(max(_ingested_at))
     FROM read_parquet(${quoteLiteral(output)}, hive_partitioning = false)`,
  );
  return {
    rows: rows ?? 0,
    bytes: statSync(output).size,
    rescued: rescued ?? 0,
    minIngestedAt: minIngestedAt ?? null,
    maxIngestedAt: maxIngestedAt ?? null,
  };
}
