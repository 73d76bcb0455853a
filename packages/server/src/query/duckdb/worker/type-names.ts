import {
  DuckDBArrayType,
  DuckDBEnumType,
  DuckDBListType,
  DuckDBMapType,
  DuckDBStructType,
  type DuckDBType,
  DuckDBUnionType,
} from '@duckdb/node-api';

/**
 * The name of a type as people see it: words in lower case, names of fields as they are, with quotes only
 * where they need them. The lake tells the types of its tables in the same way.
 */
export function typeName(type: DuckDBType): string {
  return nameOf(type, plainName);
}

/** The name of a type for a statement: a field may be named like a word of SQL, so all names have quotes. */
export function sqlTypeName(type: DuckDBType): string {
  return nameOf(type, quotedName);
}

function nameOf(type: DuckDBType, fieldName: (name: string) => string): string {
  const named = (inner: DuckDBType) => nameOf(inner, fieldName);
  // The fields of `row(1, 2)` have no names, and a table cannot hold such: they are told by their places.
  const fields = (names: readonly string[], types: readonly DuckDBType[]) =>
    types.map((inner, index) => `${fieldName(names[index] || String(index + 1))} ${named(inner)}`).join(', ');
  if (type.alias !== undefined) return type.alias.toLowerCase();
  if (type instanceof DuckDBListType) return `${named(type.valueType)}[]`;
  if (type instanceof DuckDBArrayType) return `${named(type.valueType)}[${type.length}]`;
  if (type instanceof DuckDBMapType) return `map(${named(type.keyType)}, ${named(type.valueType)})`;
  if (type instanceof DuckDBStructType) return `struct(${fields(type.entryNames, type.entryTypes)})`;
  if (type instanceof DuckDBUnionType) return `union(${fields(type.memberTags, type.memberTypes)})`;
  if (type instanceof DuckDBEnumType) return `enum(${type.values.map(quotedText).join(', ')})`;
  return type.toString().toLowerCase();
}

function plainName(name: string): string {
  return /^[a-z_][a-z0-9_]*$/.test(name) ? name : quotedName(name);
}

export function quotedName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

export function quotedText(value: string): string {
  return `'${value.replaceAll("'", "''")}'`;
}

/** Whether a value of the type is told as JSON and not as plain text. */
export function isNested(type: DuckDBType): boolean {
  return (
    type instanceof DuckDBListType ||
    type instanceof DuckDBArrayType ||
    type instanceof DuckDBMapType ||
    type instanceof DuckDBStructType ||
    type instanceof DuckDBUnionType
  );
}
