import type { TSchema } from 'typebox';
import { patternWords } from '../names.ts';
import type { JsonSchema } from './document.ts';

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * What two occurrences of one named type have in common. Making a field optional copies the outer object of
 * its schema, so the inner part, which the copy shares, tells that it is the same type.
 */
function identityOf(schema: unknown): unknown {
  if (!isRecord(schema)) return undefined;
  return schema.properties ?? schema.enum ?? schema;
}

export interface SchemaWriter {
  /** A schema as plain JSON Schema, with a reference in place of each named type. */
  write(schema: unknown): JsonSchema;
  /** Every named type by name, each written out once. */
  readonly components: Readonly<Record<string, JsonSchema>>;
}

/** Writes schemas with references to the given named types. */
export function schemaWriter(types: Readonly<Record<string, TSchema>>): SchemaWriter {
  const names = new Map(Object.entries(types).map(([name, schema]) => [identityOf(schema), name]));

  function write(schema: unknown): JsonSchema {
    const name = names.get(identityOf(schema));
    return name === undefined ? expand(schema) : { $ref: `#/components/schemas/${name}` };
  }

  function writeEach(schemas: unknown): unknown {
    if (!isRecord(schemas)) return schemas;
    return Object.fromEntries(Object.entries(schemas).map(([key, schema]) => [key, write(schema)]));
  }

  function writeKeyword(keyword: string, value: unknown): unknown {
    switch (keyword) {
      case 'properties':
      case 'patternProperties':
        return writeEach(value);
      case 'items':
      case 'additionalProperties':
        return isRecord(value) ? write(value) : value;
      case 'anyOf':
      case 'allOf':
      case 'oneOf':
        return Array.isArray(value) ? value.map(write) : value;
      default:
        return value;
    }
  }

  function expand(schema: unknown): JsonSchema {
    if (!isRecord(schema)) return {};
    return Object.fromEntries(
      Object.entries(schema)
        // Ours, and nothing that JSON Schema knows; descriptions say the same.
        .filter(([keyword]) => keyword !== patternWords)
        .map(([keyword, value]) => [keyword, writeKeyword(keyword, value)]),
    );
  }

  return {
    write,
    components: Object.fromEntries(Object.entries(types).map(([name, schema]) => [name, expand(schema)])),
  };
}
