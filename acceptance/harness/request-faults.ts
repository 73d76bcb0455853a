import type { Operation, ProblemCode } from '@millrace/contract';
import { address } from './client.ts';
import { methodOf, type WireRequest } from './requests.ts';
import { fitsText, type JsonSchema, plainSchema, sample } from './samples.ts';
import { encode, oddTexts, textFaults, valueFaults } from './value-faults.ts';

/** A request with one thing wrong, and how it is to be answered. */
export interface FaultyRequest {
  readonly what: string;
  readonly wire: WireRequest;
  /** One of these. */
  readonly codes: readonly ProblemCode[];
  /** The one place that the answer is to name. */
  readonly pointer?: string;
  /** Words that the detail is to contain. */
  readonly detail?: string;
}

/** A valid request of which the faulty ones are copies. */
export interface ValidRequest {
  readonly operation: Operation;
  readonly path: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

/** A valid request by the schemas of an operation, with every optional field of its body. */
export function validRequest(
  operation: Operation,
  organizationName: string,
  authorization: string,
): ValidRequest {
  const { path, query, headers } = schemasOf(operation);
  const texts = (schema: JsonSchema, names: readonly string[]) =>
    Object.fromEntries(names.map((name) => [name, String(sample(schema.properties?.[name] ?? {}))]));
  const withType = operation.body === undefined ? {} : { 'content-type': 'application/json' };
  return {
    operation,
    path: { ...texts(path, Object.keys(path.properties ?? {})), organizationName },
    query: texts(query, query.required ?? []),
    headers: { authorization, ...withType, ...texts(headers, Object.keys(headers.properties ?? {})) },
    body: operation.body === undefined ? undefined : encode(bodySample(operation)),
  };
}

function schemasOf(operation: Operation): Record<'path' | 'query' | 'headers', JsonSchema> {
  const { path, query, headers } = operation.parameters ?? {};
  const plain = (schema: typeof path) => (schema === undefined ? {} : plainSchema(schema));
  return { path: plain(path), query: plain(query), headers: plain(headers) };
}

/** The schema of the JSON document that an operation takes; undefined where it takes none or judges it itself. */
export function bodySchema(operation: Operation): JsonSchema | undefined {
  return operation.body !== undefined && 'schema' in operation.body
    ? plainSchema(operation.body.schema)
    : undefined;
}

function bodySample(operation: Operation): unknown {
  const schema = bodySchema(operation);
  return schema === undefined ? {} : sample(schema);
}

export function wireOf(valid: ValidRequest, change: Partial<WireRequest> = {}): WireRequest {
  const { operation, headers, body } = valid;
  const target = address(operation, valid.path, valid.query);
  return {
    method: methodOf(operation),
    target,
    headers,
    ...(body === undefined ? {} : { body }),
    ...change,
  };
}

const invalid = ['VALIDATION_FAILED'] as const;

/** Each field of the body missing, unknown, of another type or outside its limits. */
export function fieldFaults(valid: ValidRequest): FaultyRequest[] {
  const schema = bodySchema(valid.operation);
  if (schema === undefined) return [];
  return valueFaults(schema).map(({ what, pointer, value }) => ({
    what: `body ${pointer} is ${what}`,
    wire: wireOf(valid, { body: encode(value) }),
    codes: invalid,
    pointer,
  }));
}

/** Each parameter of the query missing, repeated, unknown, of another type or outside its limits. */
export function queryFaults(valid: ValidRequest): FaultyRequest[] {
  // The query of a task's endpoint is the task's own.
  if (valid.operation.access.kind === 'deployment') return [];
  const schema = schemasOf(valid.operation).query;
  const properties = Object.entries(schema.properties ?? {});
  const fault = (
    name: string,
    what: string,
    query: readonly (readonly [string, string])[],
  ): FaultyRequest => {
    const parameters = query.map((pair) => pair.map(encodeURIComponent).join('=')).join('&');
    const target = `${address(valid.operation, valid.path)}?${parameters}`;
    const pointer = `/query/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    return { what: `query ${name} ${what}`, wire: wireOf(valid, { target }), codes: invalid, pointer };
  };
  const others = (name: string) => Object.entries(valid.query).filter(([each]) => each !== name);
  const unknown = ['unknownParameter', '__proto__', 'constructor', 'toString', 'a/b~c', 'name[]', 'name[a]'];
  return [
    ...unknown.map((name) => fault(name, 'is unknown', [...others(name), [name, '1']])),
    ...(schema.required ?? []).map((name) => fault(name, 'is missing', others(name))),
    ...properties.flatMap(([name, property]) => {
      const good = String(sample(property));
      const twice = fault(name, 'is given twice', [...others(name), [name, good], [name, good]]);
      const wrong = parameterFaults(property).map((text) =>
        fault(name, `is ${JSON.stringify(text.slice(0, 40))} of ${text.length}`, [
          ...others(name),
          [name, text],
        ]),
      );
      const badlyEncoded = ['%ff', '%', '%zz', '%c0%ae'].map((text): FaultyRequest => {
        const { wire } = fault(name, '', [...others(name), [name, 'MARKER']]);
        const target = wire.target.replace('MARKER', text);
        const codes = ['MALFORMED_REQUEST', 'VALIDATION_FAILED'] as const;
        return { what: `query ${name} is encoded as ${text}`, wire: { ...wire, target }, codes };
      });
      return [twice, ...wrong, ...badlyEncoded];
    }),
  ];
}

/** Texts that a parameter does not take. A lone surrogate cannot be written in a URL. */
function parameterFaults(schema: JsonSchema): string[] {
  if (schema.type !== 'integer') {
    return textFaults(schema).flatMap(({ text }) => (text.isWellFormed() ? [text] : []));
  }
  const outside = [
    ...(schema.minimum === undefined ? [] : [schema.minimum - 1]),
    ...(schema.maximum === undefined ? [] : [schema.maximum + 1]),
  ];
  const words = [
    '',
    'many',
    '1.5',
    '1e3',
    '0x10',
    ' 5',
    '5 ',
    '+5',
    '٣',
    '9'.repeat(20),
    'NaN',
    'null',
    'true',
  ];
  return [...words, ...outside.map(String)];
}

/** Each name in the path with characters, lengths and encodings that it cannot have. */
export function pathFaults(valid: ValidRequest): FaultyRequest[] {
  const schema = schemasOf(valid.operation).path;
  return Object.entries(schema.properties ?? {}).flatMap(([name, property]) =>
    segments.flatMap((segment): FaultyRequest[] => {
      const wire = wireOf(valid, { target: withSegment(valid, name, segment) });
      const what = `path ${name} is ${segment.slice(0, 40)} of ${segment.length}`;
      const decoded = decode(segment);
      if (decoded === undefined) return [{ what, wire, codes: ['MALFORMED_REQUEST'] }];
      if (segment === '') return [{ what, wire, codes: emptySegment }];
      if (segment.length > 4096) return [{ what, wire, codes: ['URI_TOO_LONG'] }];
      if (fitsText(property, decoded)) return [];
      return [{ what, wire, codes: invalid, pointer: `/path/${name}` }];
    }),
  );
}

/** Without a name the path is another one: of nothing, or of something with other methods. */
const emptySegment = ['NOT_FOUND', 'METHOD_NOT_ALLOWED', 'VALIDATION_FAILED'] as const;

/** As they are written in a path. */
const segments = [
  ...oddTexts.filter((text) => text.isWellFormed()).map(encodeURIComponent),
  '..',
  '%2e%2e',
  '%2E%2E%2F%2E%2E',
  '%252e%252e',
  '%ff',
  '%e2%82',
  '%c0%ae%c0%ae',
  '%',
  '%zz',
  'a'.repeat(5000),
];

function withSegment(valid: ValidRequest, name: string, segment: string): string {
  const marker = 'the-one-to-replace';
  return address(valid.operation, { ...valid.path, [name]: marker }, valid.query).replace(marker, segment);
}

function decode(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

/** Each declared header missing, repeated, or with a value that it cannot have. */
export function headerFaults(valid: ValidRequest): FaultyRequest[] {
  const schema = schemasOf(valid.operation).headers;
  return Object.entries(schema.properties ?? {}).flatMap(([name, property]) => {
    const { [name]: good = '', ...others } = valid.headers;
    const shown = property.title ?? name;
    const fault = (what: string, given: Record<string, string | string[]>): FaultyRequest => ({
      what: `header ${shown} ${what}`,
      wire: wireOf(valid, { headers: { ...others, ...given } }),
      codes: invalid,
      pointer: `/header/${shown}`,
    });
    const words = textFaults(property).filter(({ text }) => /^[\x21-\x7e]*$/.test(text));
    return [
      fault('is missing', {}),
      fault('is given twice', { [name]: [good, good] }),
      ...words.map(({ what, text }) => fault(`is ${what}`, { [name]: text })),
    ];
  });
}
