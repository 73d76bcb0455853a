import type { DuckDBConnection } from '@duckdb/node-api';
import { quoteLiteral } from '../columns.ts';
import { readNumbers } from './engine.ts';
import type { ColumnSurvey, Survey } from './protocol.ts';

/** Dates and times are numbers in the file and text in its statistics; as text they are in order. */
const numbers = `'INT32', 'INT64', 'DOUBLE'`;

/**
 * What the footers of files say about their columns, by field id, and a sample of what was rescued. A leaf
 * of a file's schema has the same place among the leaves as its statistics have among the columns.
 */
export async function surveyFiles(
  connection: DuckDBConnection,
  files: readonly string[],
  samples: number,
): Promise<Survey> {
  if (files.length === 0) return { rows: 0, columns: [], rescued: [] };
  const list = `[${files.map(quoteLiteral).join(', ')}]`;
  const [rows] = await readNumbers(connection, `SELECT sum(num_rows) FROM parquet_file_metadata(${list})`);
  return {
    rows: rows ?? 0,
    columns: await surveyColumns(connection, list),
    rescued: await sampleRescued(connection, list, samples),
  };
}

async function surveyColumns(connection: DuckDBConnection, list: string): Promise<ColumnSurvey[]> {
  const reader = await connection.runAndReadAll(`
    WITH leaves AS (
      SELECT file_name, field_id, row_number() OVER (PARTITION BY file_name ORDER BY place) - 1 AS leaf
      FROM (SELECT *, row_number() OVER () AS place FROM parquet_schema(${list}))
      WHERE num_children IS NULL OR num_children = 0
    )
    SELECT field_id::INTEGER, sum(num_values)::DOUBLE, sum(coalesce(stats_null_count, 0))::DOUBLE,
      coalesce(arg_min(stats_min_value, TRY_CAST(stats_min_value AS DOUBLE)) FILTER (type IN (${numbers})),
        min(stats_min_value)),
      coalesce(arg_max(stats_max_value, TRY_CAST(stats_max_value AS DOUBLE)) FILTER (type IN (${numbers})),
        max(stats_max_value))
    FROM parquet_metadata(${list}) AS metadata
    JOIN leaves ON leaves.file_name = metadata.file_name AND leaves.leaf = metadata.column_id
    GROUP BY field_id ORDER BY field_id`);
  return reader.getRows().map(([id, values, nulls, minimum, maximum]) => ({
    id: Number(id),
    values: Number(values),
    nulls: Number(nulls),
    minimum: textOf(minimum),
    maximum: textOf(maximum),
  }));
}

async function sampleRescued(connection: DuckDBConnection, list: string, samples: number): Promise<string[]> {
  const reader = await connection.runAndReadAll(`
    SELECT CAST(_rescued AS VARCHAR) FROM read_parquet(${list}, union_by_name = true, hive_partitioning = false)
    WHERE _rescued IS NOT NULL LIMIT ${samples}`);
  return reader.getRows().map(([rescued]) => String(rescued));
}

function textOf(value: unknown): string | null {
  return value === null || value === undefined ? null : String(value);
}
