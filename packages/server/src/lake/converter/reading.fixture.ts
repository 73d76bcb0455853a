import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance, type Json } from '@duckdb/node-api';
import { type Column, firstColumnId, quoteLiteral, typeName } from '../columns.ts';
import { Converter, type ConverterOptions, type LakeRecord, type WriteOutcome } from '../converter.ts';

/** The beginning of an hour. */
export const someHour = Date.UTC(2026, 0, 1, 12);

export interface Table {
  readonly columns: readonly Column[];
  readonly nextColumnId: number;
}

export const emptyTable: Table = { columns: [], nextColumnId: firstColumnId };

/** A converter on a directory of its own. */
export class Workshop {
  readonly directory = mkdtempSync(join(tmpdir(), 'millrace-converter-'));
  readonly converter: Converter;

  constructor(options: Partial<ConverterOptions> = {}) {
    this.converter = new Converter({ directory: this.directory, ...options });
  }

  newDirectory(): string {
    const directory = join(this.directory, randomUUID());
    mkdirSync(directory);
    return directory;
  }

  /** Writes messages, given as their text, into files. */
  async write(
    bodies: readonly (string | Uint8Array)[],
    table: Table = emptyTable,
    open = true,
  ): Promise<WriteOutcome> {
    const job = await this.converter.beginWrite({ ...table, open, directory: this.newDirectory() });
    await job.send(bodies.map((body, index) => record(body, index)));
    return await job.seal();
  }

  async close(): Promise<void> {
    await this.converter.close();
    rmSync(this.directory, { recursive: true, force: true });
  }
}

export function record(body: string | Uint8Array, index: number): LakeRecord {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  return { key: `key-${index}`, id: `id-${index}`, acceptedAt: someHour + index, body: bytes };
}

export type Row = Readonly<Record<string, Json>>;

/** What a SELECT gives, as JSON. */
export async function query(sql: string): Promise<Row[]> {
  const instance = await DuckDBInstance.create(':memory:', { threads: '1' });
  const connection = await instance.connect();
  try {
    const reader = await connection.runAndReadAll(sql);
    return reader.getRowObjectsJson();
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

/** The rows of the files of a write, in order. */
export async function rowsOf(outcome: WriteOutcome): Promise<Row[]> {
  const files = outcome.files.map(({ path }) => quoteLiteral(path)).join(', ');
  return await query(`SELECT * FROM read_parquet([${files}]) ORDER BY _ingested_at`);
}

/** The values of a column, in order. */
export async function valuesOf(outcome: WriteOutcome, column: string): Promise<Json[]> {
  const rows = await rowsOf(outcome);
  return rows.map((row) => row[column] ?? null);
}

/** What was rescued, parsed. */
export async function rescuedOf(outcome: WriteOutcome): Promise<unknown[]> {
  const values = await valuesOf(outcome, '_rescued');
  return values.map((value) => (typeof value === 'string' ? JSON.parse(value) : value));
}

/** Names and types as people see them. */
export function typesOf({ columns }: Table): Record<string, string> {
  return Object.fromEntries(columns.map(({ name, type }) => [name, typeName(type)]));
}

export interface SchemaEntry {
  readonly name: string;
  readonly id: number | null;
}

/** The columns in a file's own footer, those inside lists and structs included. */
export async function schemaOf(path: string): Promise<SchemaEntry[]> {
  const rows = await query(`SELECT name, field_id FROM parquet_schema(${quoteLiteral(path)})`);
  return rows.map(({ name, field_id: id }) => ({ name: String(name), id: id === null ? null : Number(id) }));
}
