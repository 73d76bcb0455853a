import { fitsText, type JsonSchema, sample } from './samples.ts';

/** A document with one thing wrong, and the pointer to it. */
export interface ValueFault {
  readonly what: string;
  readonly pointer: string;
  readonly value: unknown;
}

/** Written as a number that is too large for any program to hold. */
const hugeNumber = '<1e400>';

/** The JSON text of a document with faults. */
export function encode(value: unknown): string {
  return JSON.stringify(value).replaceAll(`"${hugeNumber}"`, '1e400');
}

const kinds: readonly (readonly [type: string, value: unknown])[] = [
  ['string', 'text'],
  ['string', '1'],
  ['number', 1.5],
  ['boolean', true],
  ['null', null],
  ['array', []],
  ['object', {}],
];

/** Texts that are bad for some patterns; those that fit a schema are no faults of it. */
export const oddTexts = [
  '',
  ' ',
  'two words',
  'line\n',
  '\u0000',
  'nul\u0000inside',
  '..',
  '../up',
  'a/b',
  '_under',
  '.dot',
  'é',
  '\ud800',
  '💥',
  '%2e%2e',
  'nobody@',
  'a'.repeat(65),
  'a'.repeat(129),
  'a'.repeat(300),
];

const unknownNames = ['unknownField', '__proto__', 'constructor', 'toString', '', 'a/b~c'];

/** Every document that differs from a valid one in a single place where the schema does not allow it. */
export function valueFaults(schema: JsonSchema, valid: unknown = sample(schema), pointer = ''): ValueFault[] {
  const here = (what: string, value: unknown): ValueFault => ({ what, pointer, value });
  const allowed = schema.anyOf?.map(({ type }) => type) ?? [schema.type];
  if (allowed.includes(undefined)) return [];
  const wrongTypes = kinds
    .filter(([type]) => !allowed.some((each) => each === type))
    .map(([type, value]) => here(`a ${type} (${JSON.stringify(value)})`, value));
  return [
    ...wrongTypes,
    ...textFaults(schema).map(({ what, text }) => here(what, text)),
    ...numberFaults(schema).map(({ what, value }) => here(what, value)),
    ...(Array.isArray(valid) ? arrayFaults(schema, valid, pointer) : []),
    ...(schema.type === 'object' ? objectFaults(schema, { ...Object(valid) }, pointer) : []),
  ];
}

/** Texts that a schema of strings does not allow. */
export function textFaults(schema: JsonSchema): { what: string; text: string }[] {
  if (schema.type !== 'string') return [];
  const candidates = [...oddTexts];
  if (schema.maxLength !== undefined) candidates.push('a'.repeat(schema.maxLength + 1));
  if (schema.format !== undefined) candidates.push('yesterday', '2026-11-15', '2026-13-45T99:99:99Z');
  for (const word of schema.enum ?? []) candidates.push(word.toLowerCase(), `${word} `);
  if (schema.enum !== undefined) candidates.push('NONE_OF_THEM', '__proto__', 'constructor');
  return [...new Set(candidates)]
    .filter((text) => !fitsText(schema, text))
    .map((text) => ({ what: `the text ${JSON.stringify(text.slice(0, 40))} of ${text.length}`, text }));
}

function numberFaults(schema: JsonSchema): { what: string; value: unknown }[] {
  if (schema.type !== 'integer' && schema.type !== 'number') return [];
  const values: unknown[] = [hugeNumber];
  if (schema.minimum !== undefined) values.push(schema.minimum - 1);
  if (schema.maximum !== undefined && schema.maximum < Number.MAX_SAFE_INTEGER)
    values.push(schema.maximum + 1);
  return values.map((value) => ({ what: `the number ${value}`, value }));
}

function arrayFaults(schema: JsonSchema, valid: readonly unknown[], pointer: string): ValueFault[] {
  const items = schema.items ?? {};
  const ofLength = (length: number): ValueFault => ({
    what: `${length} items`,
    pointer,
    value: Array.from({ length }, () => sample(items)),
  });
  return [
    ...(schema.maxItems === undefined ? [] : [ofLength(schema.maxItems + 1)]),
    ...(schema.minItems === undefined || schema.minItems === 0 ? [] : [ofLength(schema.minItems - 1)]),
    ...valueFaults(items, valid[0], `${pointer}/0`).map((fault) => ({
      ...fault,
      value: [fault.value, ...valid.slice(1)],
    })),
  ];
}

function objectFaults(schema: JsonSchema, valid: Record<string, unknown>, pointer: string): ValueFault[] {
  const within = (name: string) => `${pointer}/${escapePointer(name)}`;
  // Not a spread of names: a field called __proto__ must end up in the document.
  const withField = (name: string, value: unknown) =>
    Object.fromEntries([...Object.entries(valid).filter(([each]) => each !== name), [name, value]]);
  const withoutField = (name: string) =>
    Object.fromEntries(Object.entries(valid).filter(([each]) => each !== name));
  const patterns = Object.entries(schema.patternProperties ?? {});
  const isKnown = (name: string) =>
    Object.hasOwn(schema.properties ?? {}, name) ||
    patterns.some(([pattern]) => new RegExp(pattern, 'u').test(name));

  const missing = (schema.required ?? []).map((name) => ({
    what: `without ${name}`,
    pointer: within(name),
    value: withoutField(name),
  }));
  const unknown =
    schema.additionalProperties === false
      ? [...unknownNames, '1 number first']
          .filter((name) => !isKnown(name))
          .map((name) => ({
            what: `an unknown field "${name}"`,
            pointer: within(name),
            value: withField(name, 1),
          }))
      : [];
  const tooMany =
    schema.maxProperties === undefined
      ? []
      : [
          {
            what: `${schema.maxProperties + 1} fields`,
            pointer,
            value: Object.fromEntries(
              Array.from({ length: schema.maxProperties + 1 }, (_value, index) => [
                `FIELD${index}`,
                sample(patterns[0]?.[1] ?? {}),
              ]),
            ),
          },
        ];
  const inside = Object.entries(valid).flatMap(([name, value]) => {
    const property = schema.properties?.[name] ?? patterns[0]?.[1] ?? {};
    return valueFaults(property, value, within(name)).map((fault) => ({
      ...fault,
      value: withField(name, fault.value),
    }));
  });
  return [...missing, ...unknown, ...tooMany, ...inside];
}

function escapePointer(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}
