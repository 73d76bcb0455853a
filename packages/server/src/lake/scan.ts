import { castSql, nullSql, rescuedSql } from './casting.ts';
import type { LakeFile } from './catalog.ts';
import {
  type Column,
  type ColumnType,
  foldName,
  quoteIdentifier,
  quoteLiteral,
  sameType,
  sqlType,
  systemColumns,
  widens,
} from './columns.ts';

/** The folders of a file look like columns, and are none. */
const asFiles = 'hive_partitioning = false';

/** A file, and the columns it was written with. */
export interface ScannedFile {
  readonly path: string;
  readonly columns: readonly Column[];
  /** Whether any row has something in `_rescued`. */
  readonly hasRescued: boolean;
}

/** How a column of a table is read from a file of some layout. */
type Reading =
  /** By its id, as the engine does it for any number of files at once. */
  { readonly kind: 'plain' } | { readonly kind: 'expression'; readonly sql: string };

/** Files of one layout. */
interface Group {
  readonly byId: ReadonlyMap<number, Column>;
  readonly byName: ReadonlyMap<string, Column>;
  readonly hasRescued: boolean;
  readonly paths: string[];
}

/**
 * The SELECT that reads a table from its files: all columns in the table's order, then `_key`, `_id`,
 * `_ingested_at` and `_rescued`. No value makes it fail.
 *
 * Files that have the table's columns under their ids, or lack some, or have narrower types, are read
 * together by id. The others are read layout by layout: a column is found by id or else by name, cast where
 * that loses nothing, and what could not be in the column before is taken from `_rescued`.
 */
export function scanSql(columns: readonly Column[], files: readonly ScannedFile[]): string {
  if (files.length === 0) return emptySql(columns);
  const together: string[] = [];
  const apart: string[] = [];
  for (const group of groups(files)) {
    const readings = columns.map((column) => readingOf(column, group));
    if (readings.every(({ kind }) => kind === 'plain')) together.push(...group.paths);
    else apart.push(layoutSql(columns, group, readings));
  }
  const parts = together.length === 0 ? apart : [byIdSql(columns, together), ...apart];
  return parts.join('\nUNION ALL\n');
}

/** The file of a snapshot as a scan wants it. */
export function scannedFile(
  file: LakeFile,
  layouts: ReadonlyMap<string, readonly Column[]>,
  path: string,
): ScannedFile {
  const columns = layouts.get(file.layoutId);
  if (columns === undefined) throw new Error(`The layout of the file ${file.key} is missing.`);
  return { path, columns, hasRescued: file.rescued > 0 };
}

function groups(files: readonly ScannedFile[]): Iterable<Group> {
  const byLayout = new Map<readonly Column[], [Group?, Group?]>();
  const all: Group[] = [];
  for (const { path, columns, hasRescued } of files) {
    const pair = byLayout.get(columns) ?? [];
    byLayout.set(columns, pair);
    const place = hasRescued ? 1 : 0;
    let group = pair[place];
    if (group === undefined) {
      const byId = new Map(columns.map((column) => [column.id, column]));
      const byName = new Map(columns.map((column) => [foldName(column.name), column]));
      group = { byId, byName, hasRescued, paths: [] };
      pair[place] = group;
      all.push(group);
    }
    group.paths.push(path);
  }
  return all;
}

function readingOf(column: Column, { byId, byName, hasRescued }: Group): Reading {
  const sameId = byId.get(column.id);
  if (sameId !== undefined && sameType(sameId.type, column.type)) return { kind: 'plain' };
  const found = sameId ?? byName.get(foldName(column.name));
  if (found === undefined) {
    return hasRescued ? { kind: 'expression', sql: rescuedSql(column) } : { kind: 'plain' };
  }
  const isPlain = sameId !== undefined && readsById(sameId.type, column.type);
  if (isPlain && !hasRescued) return { kind: 'plain' };
  const cast = isPlain
    ? `CAST(${quoteIdentifier(found.name)} AS ${sqlType(column.type)})`
    : castSql(quoteIdentifier(found.name), found.type, column.type);
  // What was rescued is the whole of the value, and what is in the column may be a part of it.
  return {
    kind: 'expression',
    sql: hasRescued ? `COALESCE(${rescuedSql(column)}, ${cast})` : cast,
  };
}

/** Whether the engine reads the one as the other without our help: fields of structs go by their names. */
function readsById(from: ColumnType, to: ColumnType): boolean {
  return widens(from, to) && sameNames(from, to);
}

function sameNames(from: ColumnType, to: ColumnType): boolean {
  if (from.kind === 'list' && to.kind === 'list') return sameNames(from.element.type, to.element.type);
  if (from.kind !== 'struct' || to.kind !== 'struct') return true;
  return from.fields.every((field) => {
    const match = to.fields.find(({ id }) => id === field.id);
    return match !== undefined && match.name === field.name && sameNames(field.type, match.type);
  });
}

function byIdSql(columns: readonly Column[], paths: readonly string[]): string {
  const all = [...columns, ...systemColumns];
  const schema = all.map(
    ({ id, name, type }) =>
      `${id}: {name: ${quoteLiteral(name)}, type: ${quoteLiteral(sqlType(type))}, default_value: NULL}`,
  );
  return `SELECT * FROM read_parquet(${pathsSql(paths)}, ${asFiles}, schema = MAP {${schema.join(', ')}})`;
}

function layoutSql(columns: readonly Column[], group: Group, readings: readonly Reading[]): string {
  const selected = columns.map((column, index) => {
    const reading = readings[index];
    const name = quoteIdentifier(column.name);
    if (reading?.kind === 'expression') return `${reading.sql} AS ${name}`;
    const stored = group.byId.get(column.id);
    if (stored === undefined) return `${nullSql(column.type)} AS ${name}`;
    return `CAST(${quoteIdentifier(stored.name)} AS ${sqlType(column.type)}) AS ${name}`;
  });
  // They are the same in all files, so there is nothing to cast that could fail.
  const own = systemColumns.map(({ name }) => quoteIdentifier(name));
  return `SELECT ${[...selected, ...own].join(', ')} FROM read_parquet(${pathsSql(group.paths)}, ${asFiles})`;
}

function emptySql(columns: readonly Column[]): string {
  const all = [...columns, ...systemColumns];
  return `SELECT ${all.map(({ name, type }) => `${nullSql(type)} AS ${quoteIdentifier(name)}`).join(', ')} WHERE false`;
}

function pathsSql(paths: readonly string[]): string {
  return `[${paths.map(quoteLiteral).join(', ')}]`;
}
