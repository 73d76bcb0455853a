import { limitColumns, unify } from './column-changes.ts';
import {
  type Column,
  type ColumnType,
  columnLimit,
  elementName,
  foldName,
  isColumnName,
  isSystemName,
} from './columns.ts';

/** What a schema says about the columns of a table, whose ids are given later, or why it cannot be used. */
export type SchemaReading = { readonly columns: readonly Column[] } | { readonly refusal: string };

type Document = Readonly<Record<string, unknown>>;

/** Deeper, or with more fields in one object, a value is kept as JSON, as when it is inferred. */
const mostDepth = 8;
const mostFields = 500;
const mostReferences = 32;
/** References can make a short schema endlessly large: reading one takes no more steps than this. */
const mostSteps = 250_000;

class Refused extends Error {}

/** Reads an uploaded schema: the properties of the object it describes are the columns, in that order. */
export async function readJsonSchema(text: string): Promise<SchemaReading> {
  let schema: unknown;
  try {
    schema = JSON.parse(text);
  } catch {
    return { refusal: 'The schema is not a JSON document.' };
  }
  if (!isDocument(schema)) return { refusal: 'The schema must be a JSON object.' };
  const flaw = await flawOf(schema);
  if (flaw !== undefined) return { refusal: flaw };
  try {
    const reader = new Reader(schema);
    const properties = reader.objectAt(schema);
    if (properties === undefined) return { refusal: 'The schema must describe an object.' };
    const top = properties.filter(({ name }) => !isSystemName(name));
    return { columns: limitColumns(top, columnLimit) };
  } catch (error) {
    if (error instanceof Refused) return { refusal: error.message };
    throw error;
  }
}

/** What is wrong with a schema by the rules of the draft it names, of 2020-12 unless it names one. */
async function flawOf(schema: Document): Promise<string | undefined> {
  const named = schema.$schema ?? 'https://json-schema.org/draft/2020-12/schema';
  const draft = typeof named === 'string' ? named.replace(/^http:/, 'https:').replace(/#$/, '') : '';
  // Read only where it is used: it is slow to load.
  const options = { strict: false, validateFormats: false, logger: false } as const;
  if (draft === 'https://json-schema.org/draft/2020-12/schema') {
    const { Ajv2020 } = await import('ajv/dist/2020.js');
    return firstFlaw(new Ajv2020(options), schema);
  }
  if (draft === 'https://json-schema.org/draft-07/schema') {
    const { Ajv } = await import('ajv');
    return firstFlaw(new Ajv(options), { ...schema, $schema: 'http://json-schema.org/draft-07/schema#' });
  }
  return 'The schema must be of draft 2020-12 or draft 07.';
}

interface Validator {
  validateSchema(schema: Document): unknown;
  readonly errors?: readonly { instancePath: string; message?: string }[] | null;
}

function firstFlaw(validator: Validator, schema: Document): string | undefined {
  let isValid: unknown;
  try {
    isValid = validator.validateSchema(schema);
  } catch {
    return 'The schema is not a JSON Schema.';
  }
  if (isValid === true) return undefined;
  const [first] = validator.errors ?? [];
  return `The schema is not a JSON Schema: ${first?.instancePath || 'it'} ${first?.message ?? 'is wrong'}.`;
}

/** Walks a schema. References lead anywhere inside the document, also in circles. */
class Reader {
  readonly #root: Document;
  #references = 0;
  #steps = 0;

  constructor(root: Document) {
    this.#root = root;
  }

  /** The properties of the object that a schema describes; undefined when it describes something else. */
  objectAt(schema: Document): Column[] | undefined {
    const type = this.#typeOf(schema, 0);
    if (type?.kind === 'struct') return [...type.fields];
    const types = typesOf(this.#followed(schema));
    const describesObject = types.length === 0 ? !this.#describesOther(schema) : types.includes('object');
    return describesObject ? [] : undefined;
  }

  #describesOther(schema: Document): boolean {
    const names = ['items', 'prefixItems', 'enum', 'const', 'anyOf', 'oneOf'];
    return names.some((name) => schema[name] !== undefined);
  }

  /** The type of what a schema describes; undefined when that is nothing but null. */
  #typeOf(schema: unknown, depth: number): ColumnType | undefined {
    if (!isDocument(schema)) return json;
    this.#steps += 1;
    if (this.#steps > mostSteps)
      throw new Refused('The schema is too large when its references are followed.');
    const { $ref } = schema;
    if ($ref !== undefined) {
      const target = this.#resolve($ref);
      this.#references += 1;
      const isTooDeep = this.#references > mostReferences || depth >= mostDepth;
      const type = isTooDeep ? json : this.#typeOf(target, depth);
      this.#references -= 1;
      return type;
    }
    const parts = [this.#ownType(schema, depth), ...this.#combined(schema, depth)];
    const known = parts.filter((part): part is ColumnType => part !== undefined && part !== json);
    if (known.length === 0) return parts.some((part) => part === json) ? json : undefined;
    return known.reduce((one, other) => merge(one, other));
  }

  /** What the parts say that must all hold, and those of which one must. */
  *#combined(schema: Document, depth: number): Generator<ColumnType | undefined> {
    if (Array.isArray(schema.allOf)) {
      for (const part of schema.allOf) yield this.#typeOf(part, depth);
    }
    for (const choices of [schema.anyOf, schema.oneOf]) {
      if (!Array.isArray(choices)) continue;
      const types = choices.map((choice) => this.#typeOf(choice, depth)).filter((type) => type !== undefined);
      if (types.length > 0) yield types.reduce((one, other) => unify(one, other));
    }
  }

  #ownType(schema: Document, depth: number): ColumnType | undefined {
    const types = typesOf(schema);
    if (types.length === 0) return this.#typeOfValues(schema) ?? json;
    const real = types.filter((type) => type !== 'null');
    if (real.length === 0) return undefined;
    const found = real.map((type) => this.#named(type, schema, depth));
    return found.reduce((one, other) => unify(one, other));
  }

  /** The type of the values that are listed. */
  #typeOfValues(schema: Document): ColumnType | undefined {
    const values = Array.isArray(schema.enum) ? schema.enum : 'const' in schema ? [schema.const] : [];
    const types = values.filter((value) => value !== null).map(scalarTypeOf);
    return types.length === 0 ? undefined : types.reduce((one, other) => unify(one, other));
  }

  #named(type: string, schema: Document, depth: number): ColumnType {
    switch (type) {
      case 'boolean':
        return { kind: 'boolean' };
      case 'integer':
        return { kind: 'bigint' };
      case 'number':
        return { kind: 'double' };
      case 'string':
        if (schema.format === 'date-time') return { kind: 'timestamp' };
        return { kind: schema.format === 'date' ? 'date' : 'varchar' };
      case 'array':
        return this.#list(schema, depth + 1);
      case 'object':
        return this.#struct(schema, depth + 1);
      default:
        return json;
    }
  }

  #list(schema: Document, depth: number): ColumnType {
    if (depth > mostDepth) return json;
    const { items, prefixItems } = schema;
    const listed = Array.isArray(items) ? items : Array.isArray(prefixItems) ? prefixItems : [];
    const all = isDocument(items) ? [...listed, items] : listed;
    const types = all.map((item) => this.#typeOf(item, depth)).filter((type) => type !== undefined);
    const type = types.length === 0 ? json : types.reduce((one, other) => unify(one, other));
    return type === json ? json : { kind: 'list', element: { id: 0, name: elementName, type } };
  }

  #struct(schema: Document, depth: number): ColumnType {
    // The object at the top is the message itself.
    if (depth > mostDepth + 1) return json;
    const properties = isDocument(schema.properties) ? Object.entries(schema.properties) : [];
    if (depth > 1 && properties.length > mostFields) return json;
    const fields: Column[] = [];
    const seen = new Set<string>();
    for (const [name, property] of properties) {
      // Of two names that are one to SQL the first is the column; the other is rescued.
      if (!isColumnName(name) || seen.has(foldName(name))) continue;
      const type = this.#typeOf(property, depth);
      if (type === undefined) continue;
      seen.add(foldName(name));
      fields.push({ id: 0, name, type });
    }
    return fields.length === 0 ? json : { kind: 'struct', fields };
  }

  #followed(schema: Document): Document {
    let found = schema;
    for (let step = 0; step < mostReferences && found.$ref !== undefined; step += 1) {
      found = this.#resolve(found.$ref);
    }
    return found;
  }

  /** What a reference points at, inside the document. */
  #resolve(reference: unknown): Document {
    const refuse = () => new Refused(`The schema refers to ${shown(reference)}, which is not in it.`);
    if (typeof reference !== 'string' || !/^#(\/|$)/.test(reference)) throw refuse();
    let found: unknown = this.#root;
    for (const part of reference.split('/').slice(1)) {
      const name = unescapePointer(part);
      if (Array.isArray(found)) found = found[Number(name)];
      else if (isDocument(found) && Object.hasOwn(found, name)) found = found[name];
      else throw refuse();
    }
    if (!isDocument(found)) throw refuse();
    return found;
  }
}

/** Says that there is nothing to say: any value. Compared by identity. */
const json: ColumnType = { kind: 'json' };

/** A value must be both: what is said in more places adds up, and a narrower type wins over a wider one. */
function merge(one: ColumnType, other: ColumnType): ColumnType {
  if (one.kind === 'struct' && other.kind === 'struct') return unify(one, other);
  if (one.kind === 'bigint' || one.kind === 'date' || one.kind === 'timestamp') return one;
  return other;
}

function typesOf(schema: Document): string[] {
  const { type } = schema;
  if (typeof type === 'string') return [type];
  if (Array.isArray(type)) return type.filter((each) => typeof each === 'string');
  if (isDocument(schema.properties)) return ['object'];
  if (schema.items !== undefined || schema.prefixItems !== undefined) return ['array'];
  return typeof schema.format === 'string' ? ['string'] : [];
}

function scalarTypeOf(value: unknown): ColumnType {
  if (typeof value === 'string') return { kind: 'varchar' };
  if (typeof value === 'boolean') return { kind: 'boolean' };
  if (typeof value === 'number') return { kind: Number.isInteger(value) ? 'bigint' : 'double' };
  return { kind: 'json' };
}

function isDocument(value: unknown): value is Document {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function unescapePointer(part: string): string {
  try {
    return decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~');
  } catch {
    return part;
  }
}

function shown(reference: unknown): string {
  return typeof reference === 'string' ? JSON.stringify(reference.slice(0, 100)) : 'something';
}
