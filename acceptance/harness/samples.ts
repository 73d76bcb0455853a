import type { TSchema } from 'typebox';

/** A JSON schema as plain data, with the keywords that the contract uses. */
export interface JsonSchema {
  readonly type?: 'string' | 'integer' | 'number' | 'boolean' | 'null' | 'array' | 'object';
  readonly title?: string;
  readonly const?: unknown;
  readonly enum?: readonly string[];
  readonly anyOf?: readonly JsonSchema[];
  readonly pattern?: string;
  readonly format?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly items?: JsonSchema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly patternProperties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean;
  readonly maxProperties?: number;
}

export function plainSchema(schema: TSchema): JsonSchema {
  return JSON.parse(JSON.stringify(schema));
}

/** Texts of which at least one fits each pattern of the contract. */
const texts = ['sample', 'SAMPLE', '1', 'ada@example.com', '/sample', '2026-11-15T09:30:00.000Z'];

/** A valid value of a schema, with every optional property. */
export function sample(schema: JsonSchema): unknown {
  if (schema.const !== undefined) return schema.const;
  if (schema.anyOf?.[0] !== undefined) return sample(schema.anyOf[0]);
  switch (schema.type) {
    case 'string':
      return schema.enum?.[0] ?? fittingText(schema);
    case 'integer':
    case 'number':
      return schema.minimum ?? 1;
    case 'boolean':
      return true;
    case 'null':
      return null;
    case 'array':
      return Array.from({ length: Math.max(1, schema.minItems ?? 0) }, () => sample(schema.items ?? {}));
    case 'object':
      return Object.fromEntries([
        ...Object.entries(schema.properties ?? {}).map(([name, property]) => [name, sample(property)]),
        ...Object.values(schema.patternProperties ?? {}).map((property) => ['SAMPLE', sample(property)]),
      ]);
    default:
      return { anything: true };
  }
}

function fittingText(schema: JsonSchema): string {
  const found = texts.find((text) => fitsText(schema, text));
  if (found === undefined) throw new Error(`no sample text fits ${JSON.stringify(schema)}`);
  return found;
}

/** Whether a text is valid by a schema of strings. */
export function fitsText(schema: JsonSchema, text: string): boolean {
  if (schema.enum !== undefined && !schema.enum.includes(text)) return false;
  if (schema.pattern !== undefined && !new RegExp(schema.pattern, 'u').test(text)) return false;
  if (schema.format === 'date-time' && !/^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(text)) return false;
  const length = [...text].length;
  return length >= (schema.minLength ?? 0) && length <= (schema.maxLength ?? Number.POSITIVE_INFINITY);
}
