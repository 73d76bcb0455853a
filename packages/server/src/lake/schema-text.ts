import { type Column, type ColumnType, elementName } from './columns.ts';

/** Whether the column at a path, such as `['address', 'street']`, may be null. */
export type Nullability = (path: readonly string[]) => boolean;

/** The JSON Schema of what the columns hold. */
export function writeJsonSchema(columns: readonly Column[], isNullable: Nullability): string {
  return JSON.stringify({
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    ...objectSchema(columns, [], isNullable),
  });
}

function objectSchema(
  columns: readonly Column[],
  path: readonly string[],
  isNullable: Nullability,
): Record<string, unknown> {
  const required = columns.filter(({ name }) => !isNullable([...path, name])).map(({ name }) => name);
  return {
    type: 'object',
    properties: propertiesOf(columns, path, isNullable),
    ...(required.length === 0 ? {} : { required }),
  };
}

function propertiesOf(columns: readonly Column[], path: readonly string[], isNullable: Nullability): object {
  // A field may have any name, `__proto__` too.
  return Object.fromEntries(
    columns.map((column) => [column.name, columnSchema(column, [...path, column.name], isNullable)]),
  );
}

function columnSchema({ type }: Column, path: readonly string[], isNullable: Nullability): object {
  const described = typeSchema(type, path, isNullable);
  const name = described.type;
  return isNullable(path) && typeof name === 'string' ? { ...described, type: [name, 'null'] } : described;
}

function typeSchema(
  type: ColumnType,
  path: readonly string[],
  isNullable: Nullability,
): Record<string, unknown> {
  switch (type.kind) {
    case 'boolean':
      return { type: 'boolean' };
    case 'bigint':
      return { type: 'integer' };
    case 'double':
      return { type: 'number' };
    case 'varchar':
      return { type: 'string' };
    case 'timestamp':
      return { type: 'string', format: 'date-time' };
    case 'date':
      return { type: 'string', format: 'date' };
    case 'json':
      return {};
    case 'list':
      return { type: 'array', items: columnSchema(type.element, [...path, elementName], isNullable) };
    case 'struct':
      return objectSchema(type.fields, path, isNullable);
  }
}
