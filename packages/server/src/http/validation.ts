import { names, type Operation } from '@millrace/contract';
import type { TObject, TSchema } from 'typebox';
import { Compile, type Validator } from 'typebox/compile';
import { type FieldError, type Problem, problem } from '../platform/problem.ts';

/** The parts of a request that have a schema, with the prefix of their pointers. */
const prefixes = { path: '/path', query: '/query', headers: '/header', body: '' } as const;
type Part = keyof typeof prefixes;

const mostErrors = 20;

/** What the library says of a fault. */
interface LibraryError {
  readonly message: string;
  readonly keyword: string;
  readonly params: object;
  readonly schemaPath: string;
}

/**
 * Checks the parts of requests of one operation against its schemas. Schemas are compiled when first
 * needed, so that starting the service does not wait for sixty operations nobody has called yet.
 */
export class RequestValidator {
  readonly #operation: Operation;
  readonly #compiled: Partial<Record<Part, Validator>> = {};
  /** The parameters of the query that are no text. */
  readonly #integers: readonly string[];
  readonly #headers: readonly string[];

  constructor(operation: Operation) {
    this.#operation = operation;
    const { query, headers } = operation.parameters ?? {};
    this.#integers = Object.entries(query?.properties ?? {})
      .filter(([, property]) => typeOf(property) === 'integer')
      .map(([name]) => name);
    this.#headers = Object.keys(headers?.properties ?? {});
  }

  path(values: unknown): Problem | undefined {
    return this.#check('path', this.#operation.parameters?.path, values);
  }

  /** Turns the strings of a query into what the schema says, in place, and checks them. */
  query(values: Record<string, unknown>): Problem | undefined {
    const schema = this.#operation.parameters?.query;
    if (schema === undefined) {
      const unknown = Object.keys(values);
      if (unknown.length === 0) return undefined;
      return invalid(unknown.slice(0, mostErrors).map((name) => unknownField('query', name)));
    }
    for (const name of this.#integers) {
      const value = values[name];
      if (typeof value === 'string' && /^-?\d{1,16}$/.test(value)) values[name] = Number(value);
    }
    return this.#check('query', schema, values);
  }

  /** The declared headers by lower-case name; others are none of our business. */
  headers(all: Record<string, unknown>): { values: Record<string, unknown> } | Problem {
    const schema = this.#operation.parameters?.headers;
    const values: Record<string, unknown> = {};
    for (const name of this.#headers) {
      if (all[name] !== undefined) values[name] = all[name];
    }
    return this.#check('headers', schema, values) ?? { values };
  }

  body(value: unknown): Problem | undefined {
    const body = this.#operation.body;
    return body !== undefined && 'schema' in body ? this.#check('body', body.schema, value) : undefined;
  }

  #check(part: Part, schema: TSchema | undefined, value: unknown): Problem | undefined {
    if (schema === undefined) return undefined;
    const validator = this.#compiled[part] ?? Compile(schema);
    this.#compiled[part] = validator;
    if (validator.Check(value)) return undefined;
    return invalid(tooMany(part, schema, value) ?? fieldErrors(part, schema, validator, value));
  }
}

/** Saying what is wrong with each of a hundred thousand items takes long, when there may be a hundred. */
function tooMany(part: Part, schema: TSchema, value: unknown): FieldError[] | undefined {
  const properties: Record<string, TSchema> = (schema as Partial<TObject>).properties ?? {};
  for (const [name, item] of Object.entries(value ?? {})) {
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
    const most = property !== undefined && 'maxItems' in property ? Number(property.maxItems) : Infinity;
    if (Array.isArray(item) && item.length > most) {
      return [
        {
          pointer: pointer(part, schema, `/${escapePointer(name)}`),
          message: `must not have more than ${most} items`,
        },
      ];
    }
  }
  return undefined;
}

function fieldErrors(part: Part, schema: TSchema, validator: Validator, value: unknown): FieldError[] {
  const errors = new Map<string, FieldError>();
  const add = (error: FieldError) => {
    // The first thing that is wrong with a place is the one worth telling.
    if (!errors.has(error.pointer) && errors.size < mostErrors) errors.set(error.pointer, error);
  };
  for (const error of validator.Errors(value)) {
    const at = error.instancePath;
    if (error.keyword === 'required') {
      for (const name of error.params.requiredProperties) {
        add({ pointer: pointer(part, schema, `${at}/${escapePointer(name)}`), message: 'is required' });
      }
    } else if (error.keyword === 'additionalProperties') {
      for (const name of error.params.additionalProperties) {
        const place = part === 'body' ? `${at}/${escapePointer(name)}` : `/${escapePointer(name)}`;
        add({
          pointer: pointer(part, schema, place),
          message: wordsOf(schema, error.schemaPath) ?? 'is not a known field',
        });
      }
    } else if (error.keyword !== 'boolean') {
      add({
        pointer: pointer(part, schema, at),
        message: sentence(schema, error),
      });
    }
  }
  return [...errors.values()];
}

function sentence(schema: TSchema, { message, keyword, params, schemaPath }: LibraryError): string {
  if (keyword === 'enum' && 'allowedValues' in params && Array.isArray(params.allowedValues)) {
    return `must be one of ${params.allowedValues.join(', ')}`;
  }
  if (keyword === 'format' && 'format' in params && params.format === 'date-time') {
    return 'must be a time, such as 2026-11-15T09:30:00.000Z';
  }
  return (keyword === 'pattern' ? wordsOf(schema, schemaPath) : undefined) ?? message;
}

/** What the schema at a place within another one asks for, in words; a pattern is for programs. */
function wordsOf(schema: TSchema, schemaPath: string): string | undefined {
  let place: unknown = schema;
  for (const step of schemaPath.split('/').slice(1)) {
    if (typeof place !== 'object' || place === null) return undefined;
    place = Reflect.get(place, step);
  }
  if (typeof place !== 'object' || place === null) return undefined;
  const words: unknown = Reflect.get(place, names.patternWords);
  return typeof words === 'string' ? words : undefined;
}

function pointer(part: Part, schema: TSchema, place: string): string {
  if (part !== 'headers') return `${prefixes[part]}${place}`;
  const name = place.slice(1);
  const properties = (schema as Partial<TObject>).properties;
  const title: unknown =
    properties?.[name] && 'title' in properties[name] ? properties[name].title : undefined;
  return `${prefixes[part]}/${typeof title === 'string' ? title : name}`;
}

function unknownField(part: Part, name: string): FieldError {
  return { pointer: `${prefixes[part]}/${escapePointer(name)}`, message: 'is not a known parameter' };
}

function typeOf(schema: TSchema): unknown {
  return 'type' in schema ? schema.type : undefined;
}

function escapePointer(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}

function invalid(errors: FieldError[]): Problem {
  const first = errors[0];
  const detail =
    first === undefined
      ? 'The request is not valid.'
      : `The request is not valid: ${first.pointer === '' ? 'the body' : first.pointer} ${first.message}.`;
  return problem('VALIDATION_FAILED', detail, { errors });
}
