import {
  DuckDBArrayType,
  DuckDBEnumType,
  DuckDBListType,
  DuckDBMapType,
  DuckDBStructType,
  type DuckDBType,
  DuckDBUnionType,
} from '@duckdb/node-api';

/** The name of a type in SQL: words in lower case, names of fields as they are. */
export function typeName(type: DuckDBType): string {
  if (type.alias !== undefined) return type.alias.toLowerCase();
  if (type instanceof DuckDBListType) return `${typeName(type.valueType)}[]`;
  if (type instanceof DuckDBArrayType) return `${typeName(type.valueType)}[${type.length}]`;
  if (type instanceof DuckDBMapType) return `map(${typeName(type.keyType)}, ${typeName(type.valueType)})`;
  if (type instanceof DuckDBStructType) return `struct(${fields(type.entryNames, type.entryTypes)})`;
  if (type instanceof DuckDBUnionType) return `union(${fields(type.memberTags, type.memberTypes)})`;
  if (type instanceof DuckDBEnumType) return `enum(${type.values.map(quotedText).join(', ')})`;
  return type.toString().toLowerCase();
}

/** The fields of `row(1, 2)` have no names, and a table cannot hold such: they are told by their places. */
function fields(names: readonly string[], types: readonly DuckDBType[]): string {
  return types
    .map((type, index) => `${quotedName(names[index] || String(index + 1))} ${typeName(type)}`)
    .join(', ');
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
