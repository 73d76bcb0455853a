import type { TSchema } from 'typebox';

/** Any unit of a text may be written as `\u0061`, and some clients write all but ASCII so. */
const bytesOfUnit = 6;
const unitsOfCharacter = 2;
/** What a number, a boolean or null takes at most. */
const bytesOfWord = 32;
/** Characters of a name that only a pattern bounds. */
const longestName = 128;
/** For the rest of a body and the white space in it. */
const room = 64 * 1024;

/** The limit of a body whose content may have so many bytes, however a client writes it. */
export function bodyFor(contentBytes: number): number {
  return bytesOfUnit * contentBytes + room;
}

/** The limit of a body that lets everything through that its schema does, however a client writes it. */
export function bodyOf(schema: TSchema): number {
  return Math.ceil(mostBytes(schema)) + room;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The most bytes that a value may take as JSON; infinite when the schema does not bound it. */
export function mostBytes(schema: unknown): number {
  if (!isRecord(schema)) return Infinity;
  if (Array.isArray(schema.enum)) return Math.max(...schema.enum.map((word) => quoted(String(word).length)));
  if (Array.isArray(schema.anyOf)) return Math.max(...schema.anyOf.map(mostBytes));
  switch (schema.type) {
    case 'string':
      return quoted(mostCharacters(schema));
    case 'integer':
    case 'number':
    case 'boolean':
    case 'null':
      return bytesOfWord;
    case 'array':
      return 2 + numberOr(schema.maxItems, Infinity) * (mostBytes(schema.items) + 1);
    case 'object':
      return 2 + ofProperties(schema.properties) + ofNamed(schema);
    default:
      return Infinity;
  }
}

function ofProperties(properties: unknown): number {
  if (!isRecord(properties)) return 0;
  return Object.entries(properties)
    .map(([name, property]) => quoted(name.length) + 2 + mostBytes(property))
    .reduce((sum, bytes) => sum + bytes, 0);
}

/** Properties that may have any name of a pattern. */
function ofNamed({ patternProperties, maxProperties }: Readonly<Record<string, unknown>>): number {
  if (!isRecord(patternProperties)) return 0;
  const largest = Math.max(...Object.values(patternProperties).map(mostBytes));
  return numberOr(maxProperties, Infinity) * (quoted(longestName) + 2 + largest);
}

function mostCharacters({ maxLength, pattern }: Readonly<Record<string, unknown>>): number {
  return numberOr(maxLength, pattern === undefined ? Infinity : longestName);
}

function quoted(characters: number): number {
  return 2 + characters * unitsOfCharacter * bytesOfUnit;
}

function numberOr(value: unknown, fallback: number): number {
  return typeof value === 'number' ? value : fallback;
}
