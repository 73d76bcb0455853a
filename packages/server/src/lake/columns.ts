/**
 * The columns of a table in the lake: what a message's fields become, how the SQL engine spells them, and
 * which changes of a type lose nothing. Pure; the writer, the catalog, queries and schemas all use it.
 */

export type ScalarKind = 'boolean' | 'bigint' | 'double' | 'varchar' | 'timestamp' | 'date' | 'json';

export type ColumnType = ScalarType | StructType | ListType;

export interface ScalarType {
  readonly kind: ScalarKind;
  /**
   * Of a bigint: it has held a number that a double cannot hold exactly, so the column must stay a bigint.
   * The stored form is the same with and without.
   */
  readonly large?: true;
}

export interface StructType {
  readonly kind: 'struct';
  readonly fields: readonly Column[];
}

export interface ListType {
  readonly kind: 'list';
  /** Named `element`, as in the Parquet files. */
  readonly element: Column;
}

export interface Column {
  /** The Parquet field id; unique in its table for ever, nested columns included. */
  readonly id: number;
  readonly name: string;
  readonly type: ColumnType;
}

/** Ids below this are the system's. */
export const firstColumnId = 16;

/** Columns a table has at most, nested ones included; further fields stand in `_rescued`. */
export const columnLimit = 10_000;

export const elementName = 'element';

/** The columns that every file has, after those of the messages. */
export const systemColumns = [
  { id: 1, name: '_key', type: { kind: 'varchar' } },
  { id: 2, name: '_id', type: { kind: 'varchar' } },
  { id: 3, name: '_ingested_at', type: { kind: 'timestamp' } },
  { id: 4, name: '_rescued', type: { kind: 'json' } },
] as const satisfies readonly Column[];

const systemNames: ReadonlySet<string> = new Set(systemColumns.map(({ name }) => name));

/** The engine finds the ids of nested columns under this name, so that no field can have it. */
const idKey = '__duckdb_field_id';

const nameLength = 255;

/** Two names with the same fold are one name to the SQL engine. */
export function foldName(name: string): string {
  return name.toLowerCase();
}

/** Whether a field of this name can be a column, at the top or in a struct. What cannot stands in `_rescued`. */
export function isColumnName(name: string): boolean {
  return (
    name !== '' &&
    name.length <= nameLength &&
    !name.includes('\0') &&
    name.isWellFormed() &&
    foldName(name) !== idKey
  );
}

/** Whether this is the name, in any case, of a column that every table has. */
export function isSystemName(name: string): boolean {
  return systemNames.has(foldName(name));
}

export function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

export function quoteLiteral(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** The type as DuckDB's SQL spells it. */
export function sqlType(type: ColumnType): string {
  switch (type.kind) {
    case 'struct':
      return `STRUCT(${type.fields.map((field) => `${quoteIdentifier(field.name)} ${sqlType(field.type)}`).join(', ')})`;
    case 'list':
      return `${sqlType(type.element.type)}[]`;
    default:
      return type.kind.toUpperCase();
  }
}

/** The type as people see it: lower-case SQL names, quotes only where a field's name needs them. */
export function typeName(type: ColumnType): string {
  switch (type.kind) {
    case 'struct':
      return `struct(${type.fields.map((field) => `${plainName(field.name)} ${typeName(field.type)}`).join(', ')})`;
    case 'list':
      return `${typeName(type.element.type)}[]`;
    default:
      return type.kind;
  }
}

function plainName(name: string): string {
  return /^[a-z_][a-z0-9_]*$/.test(name) ? name : quoteIdentifier(name);
}

/** The text of the FIELD_IDS option that gives every column of a written file its id. */
export function fieldIdsSql(columns: readonly Column[]): string {
  return `{${columns.map((column) => `${quoteLiteral(column.name)}: ${columnIdsSql(column)}`).join(', ')}}`;
}

function columnIdsSql({ id, type }: Column): string {
  const nested = nestedColumns(type);
  if (nested.length === 0) return String(id);
  return `{${idKey}: ${id}, ${nested.map((column) => `${quoteLiteral(column.name)}: ${columnIdsSql(column)}`).join(', ')}}`;
}

/** The columns directly inside a type: a struct's fields, a list's element. */
export function nestedColumns(type: ColumnType): readonly Column[] {
  if (type.kind === 'struct') return type.fields;
  return type.kind === 'list' ? [type.element] : [];
}

/** How many columns these are, nested ones included. */
export function countColumns(columns: readonly Column[]): number {
  return columns.reduce((count, column) => count + 1 + countColumns(nestedColumns(column.type)), 0);
}

/** Whether files hold these two types in the same way under the same ids, so that either can be read as the other. */
export function sameType(one: ColumnType, other: ColumnType): boolean {
  if (one.kind === 'struct') {
    return other.kind === 'struct' && sameStored(one.fields, other.fields);
  }
  if (one.kind === 'list') {
    return other.kind === 'list' && sameStored([one.element], [other.element]);
  }
  return one.kind === other.kind;
}

function sameStored(some: readonly Column[], others: readonly Column[]): boolean {
  return (
    some.length === others.length &&
    some.every((one, index) => {
      const other = others[index];
      return (
        other !== undefined &&
        one.id === other.id &&
        one.name === other.name &&
        sameType(one.type, other.type)
      );
    })
  );
}

/** Whether these are the same columns in every respect, so that a table need not change. */
export function sameColumns(some: readonly Column[], others: readonly Column[]): boolean {
  return (
    some.length === others.length &&
    some.every((one, index) => {
      const other = others[index];
      return other !== undefined && sameColumn(one, other);
    })
  );
}

function sameColumn(one: Column, other: Column): boolean {
  if (one.id !== other.id || one.name !== other.name || one.type.kind !== other.type.kind) return false;
  if (isNested(one.type) || isNested(other.type)) {
    return sameColumns(nestedColumns(one.type), nestedColumns(other.type));
  }
  return one.type.large === other.type.large;
}

export function isNested(type: ColumnType): type is StructType | ListType {
  return type.kind === 'struct' || type.kind === 'list';
}

/**
 * Whether every value of a type is a value of another, so that a column of a table may go from the one to
 * the other and old files are still read without loss: integers as doubles, dates as timestamps, a struct
 * with more fields. Nested columns are matched by id.
 */
export function widens(from: ColumnType, to: ColumnType): boolean {
  if (from.kind === 'struct') {
    return (
      to.kind === 'struct' &&
      from.fields.every((field) => {
        const match = to.fields.find(({ id }) => id === field.id);
        return match !== undefined && widens(field.type, match.type);
      })
    );
  }
  if (from.kind === 'list') {
    return (
      to.kind === 'list' && from.element.id === to.element.id && widens(from.element.type, to.element.type)
    );
  }
  if (from.kind === to.kind) return true;
  return (
    (from.kind === 'bigint' && to.kind === 'double' && from.large !== true) ||
    (from.kind === 'date' && to.kind === 'timestamp')
  );
}

const scalarKinds: ReadonlySet<string> = new Set<ScalarKind>([
  'boolean',
  'bigint',
  'double',
  'varchar',
  'timestamp',
  'date',
  'json',
]);

/** Columns as they come out of JSON. Throws when they are none. */
export function readColumns(value: unknown): Column[] {
  if (!Array.isArray(value)) throw new TypeError('Columns must be a list.');
  return value.map(readColumn);
}

function readColumn(value: unknown): Column {
  if (!isRecord(value)) throw new TypeError('A column must be an object.');
  const { id, name, type } = value;
  if (typeof id !== 'number' || typeof name !== 'string')
    throw new TypeError('A column has an id and a name.');
  return { id, name, type: readType(type) };
}

function readType(value: unknown): ColumnType {
  if (!isRecord(value)) throw new TypeError('A column has a type.');
  const { kind } = value;
  if (kind === 'struct') return { kind, fields: readColumns(value.fields) };
  if (kind === 'list') return { kind, element: readColumn(value.element) };
  if (!isScalarKind(kind)) throw new TypeError(`There is no column type ${JSON.stringify(kind)}.`);
  return value.large === true ? { kind, large: true } : { kind };
}

function isScalarKind(kind: unknown): kind is ScalarKind {
  return typeof kind === 'string' && scalarKinds.has(kind);
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
