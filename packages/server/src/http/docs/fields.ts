/** Reads a JSON Schema into the rows of a table: one row a field, nested fields below their parent. */

export interface Field {
  readonly name: string;
  readonly depth: number;
  readonly type: string;
  readonly required: boolean;
  readonly description?: string;
  readonly constraints: readonly string[];
}

type Keywords = Readonly<Record<string, unknown>>;

function keywordsOf(schema: unknown): Keywords {
  return typeof schema === 'object' && schema !== null ? { ...schema } : {};
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function mapValueOf(schema: Keywords): unknown {
  return Object.values(keywordsOf(schema.patternProperties))[0];
}

/** The type of a value in a few words. */
export function typeInWords(schema: unknown): string {
  const keywords = keywordsOf(schema);
  const { type, anyOf, format, const: constant } = keywords;
  if (constant !== undefined) return JSON.stringify(constant);
  if (Array.isArray(anyOf)) return anyOf.map(typeInWords).join(' or ');
  if (type === 'array') return `array of ${typeInWords(keywords.items)}`;
  if (type === 'object' && keywords.patternProperties !== undefined) {
    return `map of ${typeInWords(mapValueOf(keywords))}`;
  }
  if (type === 'string' && format === 'date-time') return 'time';
  return typeof type === 'string' ? type : 'any';
}

const counted = new Intl.NumberFormat('en');

function rangeInWords(minimum: unknown, maximum: unknown, unit: string): readonly string[] {
  const least = typeof minimum === 'number' ? counted.format(minimum) : undefined;
  // A bound that only keeps numbers exact tells a reader nothing.
  const most = typeof maximum === 'number' && maximum < 1e12 ? counted.format(maximum) : undefined;
  const noun = unit === '' ? '' : ` ${unit}`;
  if (least !== undefined && most !== undefined)
    return [least === most ? `${least}${noun}` : `${least} to ${most}${noun}`];
  if (most !== undefined) return [`at most ${most}${noun}`];
  return least === undefined ? [] : [`at least ${least}${noun}`];
}

/** What a value must keep to, in words. A pattern is left to the description, which says it for people. */
export function constraintsOf(schema: unknown): readonly string[] {
  const keywords = keywordsOf(schema);
  const items = keywords.type === 'array' ? constraintsOf(keywords.items) : [];
  return [
    ...(Array.isArray(keywords.enum)
      ? [`one of ${keywords.enum.map((value) => `\`${value}\``).join(', ')}`]
      : []),
    ...rangeInWords(keywords.minimum, keywords.maximum, ''),
    ...rangeInWords(keywords.minLength, keywords.maxLength, 'characters'),
    ...rangeInWords(keywords.minItems, keywords.maxItems, 'items'),
    ...rangeInWords(keywords.minProperties, keywords.maxProperties, 'entries'),
    ...items.map((constraint) => `each ${constraint}`),
    ...(keywords.default === undefined ? [] : [`\`${JSON.stringify(keywords.default)}\` unless given`]),
  ];
}

function fieldOf(name: string, schema: unknown, required: boolean, depth: number): Field {
  const { description } = keywordsOf(schema);
  return {
    name,
    depth,
    type: typeInWords(schema),
    required,
    ...(typeof description === 'string' ? { description } : {}),
    constraints: constraintsOf(schema),
  };
}

function nestedFields(schema: unknown, depth: number): readonly Field[] {
  const keywords = keywordsOf(schema);
  if (keywords.type === 'array') return nestedFields(keywords.items, depth);
  if (keywords.patternProperties !== undefined) return nestedFields(mapValueOf(keywords), depth);
  const required = listOf(keywords.required);
  return Object.entries(keywordsOf(keywords.properties)).flatMap(([name, child]) => [
    fieldOf(name, child, required.includes(name), depth),
    ...nestedFields(child, depth + 1),
  ]);
}

/** The fields of a schema; a body that is no object is a single field without a name. */
export function fieldsOf(schema: unknown): readonly Field[] {
  const fields = nestedFields(schema, 0);
  return fields.length > 0 || keywordsOf(schema).properties !== undefined
    ? fields
    : [fieldOf('', schema, true, 0)];
}
