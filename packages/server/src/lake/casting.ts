import { type Column, type ColumnType, quoteLiteral, sqlType } from './columns.ts';

/**
 * SQL that reads a value as another type than it was written with. It never throws on a value: what cannot
 * be read so is NULL, and so is what would become another value, such as 1.5 as an integer.
 */

/** A value of a column of one type, read as another. */
export function castSql(expression: string, from: ColumnType, to: ColumnType): string {
  if (from.kind === to.kind && from.kind !== 'struct' && from.kind !== 'list') return expression;
  if (from.kind === 'json') return jsonCastSql(`TRY_CAST(${expression} AS JSON)`, to);
  if (to.kind === 'json') return `to_json(${expression})`;
  if (from.kind === 'struct' || from.kind === 'list') {
    if (to.kind === 'varchar') return `CAST(to_json(${expression}) AS VARCHAR)`;
    return from.kind === to.kind ? structureSql(`to_json(${expression})`, to) : nullSql(to);
  }
  if (to.kind === 'struct' || to.kind === 'list') return nullSql(to);
  if (from.kind === 'varchar') return textCastSql(expression, to);
  if (to.kind === 'varchar') return asTextSql(expression, from);
  if (from.kind === 'double' && to.kind === 'bigint') return wholeSql(expression, expression);
  return `TRY_CAST(${expression} AS ${sqlType(to)})`;
}

/** A JSON value read as a type. */
export function jsonCastSql(json: string, to: ColumnType): string {
  if (to.kind === 'json') return json;
  if (to.kind === 'struct' || to.kind === 'list') return structureSql(json, to);
  const text = `json_extract_string(${json}, '$')`;
  return textCastSql(text, to);
}

/** What `_rescued` holds for a field, read as the type of its column. */
export function rescuedSql(column: Column): string {
  const pointer = quoteLiteral(`/${column.name.replaceAll('~', '~0').replaceAll('/', '~1')}`);
  return jsonCastSql(`json_extract(TRY_CAST("_rescued" AS JSON), ${pointer})`, column.type);
}

export function nullSql(type: ColumnType): string {
  return `CAST(NULL AS ${sqlType(type)})`;
}

function textCastSql(text: string, to: ColumnType): string {
  switch (to.kind) {
    case 'varchar':
      return text;
    case 'bigint':
      return wholeSql(text, `TRY_CAST(${text} AS DOUBLE)`);
    case 'timestamp': {
      // A plain cast would drop the offset from UTC without a word.
      const hasOffset = `regexp_matches(${text}, '[Tt ].*([Zz]|[+-][0-9]{2}(:?[0-9]{2})?)$')`;
      const withOffset = `TRY_CAST(${text} AS TIMESTAMPTZ) AT TIME ZONE 'UTC'`;
      return `CASE WHEN ${hasOffset} THEN ${withOffset} ELSE TRY_CAST(${text} AS TIMESTAMP) END`;
    }
    default:
      return `TRY_CAST(${text} AS ${sqlType(to)})`;
  }
}

/** An integer only where the number is one: a cast would round. */
function wholeSql(expression: string, number: string): string {
  return `CASE WHEN ${number} = trunc(${number}) THEN TRY_CAST(${expression} AS BIGINT) END`;
}

function asTextSql(expression: string, from: ColumnType): string {
  if (from.kind === 'timestamp') return `strftime(${expression}, '%Y-%m-%dT%H:%M:%S.%fZ')`;
  return `CAST(${expression} AS VARCHAR)`;
}

function structureSql(json: string, to: ColumnType): string {
  const wanted = to.kind === 'list' ? 'ARRAY' : 'OBJECT';
  const structure = quoteLiteral(JSON.stringify(structureOf(to)));
  return `CASE WHEN json_type(${json}) = '${wanted}' THEN from_json(${json}, ${structure}) END`;
}

type Structure = string | Structure[] | { [field: string]: Structure };

/** The type in the words of DuckDB's JSON functions. */
function structureOf(type: ColumnType): Structure {
  if (type.kind === 'list') return [structureOf(type.element.type)];
  if (type.kind === 'struct') {
    return Object.fromEntries(type.fields.map((field) => [field.name, structureOf(field.type)]));
  }
  return sqlType(type);
}
