import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import {
  buildContract,
  defaultLimits,
  isProblemCode,
  type Limits,
  limitSetting,
  listOperations,
  names,
  type Operation,
  problemCodes,
  problems,
  problemType,
} from './index.ts';
import { addedOperations, interfaceOperations, type OperationRow } from './interface-tables.fixture.ts';

const contract = buildContract();
const operations = listOperations(contract);

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The parameters of an operation as the tables write them: the name, with ? when it is optional. */
function parameterNames(declared: unknown): string {
  if (!isRecord(declared) || !isRecord(declared.properties)) return '';
  const required = Array.isArray(declared.required) ? declared.required : [];
  return Object.entries(declared.properties)
    .map(([key, schema]) =>
      isRecord(schema) && typeof schema.title === 'string' ? [key, schema.title] : [key, key],
    )
    .map(([key, name]) => (required.includes(key) ? name : `${name}?`))
    .join(' ');
}

function bodyName(operation: Operation): string {
  if (operation.body === undefined) return '';
  return 'raw' in operation.body ? 'raw' : typeName(operation.body.schema);
}

function typeName(schema: TSchema): string {
  return Object.entries(contract.types).find(([, type]) => type === schema)?.[0] ?? 'unnamed';
}

function responseName(operation: Operation): string {
  return Object.entries(operation.responses)
    .map(([status, response]) => {
      const body =
        response.schema === undefined ? (response.mediaTypes ?? []).join() : typeName(response.schema);
      return body === '' ? status : `${status} ${body}`;
    })
    .join(', ');
}

function rowOf(operation: Operation): OperationRow {
  const { parameters } = operation;
  return [
    operation.id,
    operation.method,
    operation.path,
    [parameterNames(parameters?.query), parameterNames(parameters?.headers)]
      .filter((part) => part !== '')
      .join(' '),
    bodyName(operation),
    responseName(operation),
  ];
}

function rowsById(rows: readonly OperationRow[]): Record<string, OperationRow> {
  return Object.fromEntries(rows.map((row) => [row[0], row]));
}

test('the operations are the 42 of the interface and the added ones, to the letter', (context) => {
  assert.equal(interfaceOperations.length, 42);
  assert.deepEqual(rowsById(operations.map(rowOf)), rowsById([...interfaceOperations, ...addedOperations]));
  context.diagnostic(
    `${operations.length} operations: ${interfaceOperations.length} + ${addedOperations.length}`,
  );
});

test('ids are unique and equal their keys', () => {
  assert.deepEqual(
    Object.keys(contract.operations),
    operations.map(({ id }) => id),
  );
});

test('no two operations answer the same method and path', () => {
  const places = operations.map(
    ({ method, path }) => `${method} ${path.replaceAll(/\{[^}]*\}/g, '{}').replace(/\/$/, '')}`,
  );
  assert.equal(new Set(places).size, places.length);
});

test('the parameters in each path are exactly the declared ones', () => {
  for (const { id, path, parameters } of operations) {
    const inPath = [...path.matchAll(/\{([^}]*)\}/g)].map(([, name]) => name);
    assert.deepEqual(Object.keys(parameters?.path?.properties ?? {}), inPath, id);
  }
});

function assertValid(schema: TSchema, value: unknown, what: string): void {
  const validator = Compile(schema);
  assert.ok(validator.Check(value), `${what}: ${JSON.stringify(validator.Errors(value))}`);
}

test('every example is valid', () => {
  for (const operation of operations) {
    const { id, example, parameters, body } = operation;
    const { '*': _rest, ...path } = example.path ?? {};
    if (parameters?.path !== undefined) assertValid(parameters.path, path, `${id} path`);
    else assert.equal(example.path, undefined, id);
    if (parameters?.query !== undefined) assertValid(parameters.query, example.query ?? {}, `${id} query`);
    else assert.equal(example.query, undefined, id);
    if (parameters?.headers !== undefined) {
      const headers = Object.entries(example.headers ?? {}).map(([name, value]) => [
        name.toLowerCase(),
        value,
      ]);
      assertValid(parameters.headers, Object.fromEntries(headers), `${id} headers`);
    } else assert.equal(example.headers, undefined, id);
    if (body === undefined) assert.equal(example.body, undefined, id);
    else if ('schema' in body) assertValid(body.schema, example.body, `${id} body`);
    const answer = Object.values(operation.responses).find(({ schema }) => schema !== undefined);
    if (answer?.schema === undefined) assert.equal(example.response, undefined, id);
    else assertValid(answer.schema, example.response, `${id} response`);
  }
});

test('the example of an API key looks like one', () => {
  assert.match(contract.operations.createApiKey.example.response.secret, /^mr_[0-9A-Za-z]{36}$/);
});

/** The places in requests where any field is allowed, because the fields belong to the user. */
const openMaps = new Set(['upsertState /attributes']);

function looseObjects(schema: unknown, place: string): readonly string[] {
  if (!isRecord(schema)) return [];
  const nested = [
    ...Object.entries(isRecord(schema.properties) ? schema.properties : {}),
    ...Object.entries(isRecord(schema.patternProperties) ? schema.patternProperties : {}),
    ...(schema.items === undefined ? [] : [['*', schema.items] as const]),
    ...(Array.isArray(schema.anyOf) ? schema.anyOf.map((option) => ['', option] as const) : []),
  ];
  return [
    ...(schema.type === 'object' && schema.additionalProperties !== false ? [place] : []),
    ...nested.flatMap(([name, child]) => looseObjects(child, `${place}/${name}`)),
  ];
}

test('requests refuse unknown fields everywhere but in the maps that belong to the user', () => {
  const loose = operations.flatMap(({ id, body, parameters }) => [
    ...looseObjects(parameters?.path, `${id} path`),
    ...looseObjects(parameters?.query, `${id} query`),
    ...looseObjects(parameters?.headers, `${id} headers`),
    ...(body !== undefined && 'schema' in body ? looseObjects(body.schema, `${id} `) : []),
  ]);
  assert.deepEqual(new Set(loose), openMaps);
});

test('every problem code in use is in the catalogue, with a page of its own', () => {
  for (const operation of operations) {
    const codes: readonly string[] = operation.problems ?? [];
    for (const code of codes) assert.ok(isProblemCode(code), `${operation.id} ${code}`);
    assert.equal(new Set(codes).size, codes.length, operation.id);
  }
  const pages = problemCodes.map(problemType);
  assert.equal(new Set(pages).size, pages.length);
  for (const page of pages) assert.match(page, /^\/docs\/errors\/[a-z]+(-[a-z]+)*$/);
});

test('the catalogue covers every status that the interface promises, in order', () => {
  const statuses = problemCodes.map((code) => problems[code].status);
  assert.deepEqual(
    statuses,
    statuses.toSorted((a, b) => a - b),
  );
  for (const status of [400, 401, 403, 404, 405, 409, 413, 415, 422, 429, 500, 503]) {
    assert.ok(
      statuses.some((used) => used === status),
      `${status}`,
    );
  }
});

test('every limit has a setting of its own', () => {
  const settings = limitNames().map(limitSetting);
  assert.equal(new Set(settings).size, settings.length);
  for (const setting of settings) assert.match(setting, /^MILLRACE_LIMIT_[A-Z]+(_[A-Z]+)*$/);
});

function limitNames(): readonly (keyof Limits)[] {
  return Object.keys(defaultLimits).filter((name): name is keyof Limits => name in defaultLimits);
}

test('the default limits are the ones of the interface', () => {
  const { messageBytes, batchBytes, batchMessages, codeBytes, codeUnzippedBytes, codeEntries } =
    defaultLimits;
  assert.deepEqual(
    [messageBytes, batchBytes, batchMessages, codeBytes, codeUnzippedBytes, codeEntries],
    [2 ** 20, 16 * 2 ** 20, 10_000, 200 * 2 ** 20, 2 ** 30, 20_000],
  );
  const { stateKeyParts, stateKeyBytes, stateAttributesBytes, sqlBytes } = defaultLimits;
  assert.deepEqual(
    [stateKeyParts, stateKeyBytes, stateAttributesBytes, sqlBytes],
    [32, 1024, 400 * 1024, 256 * 1024],
  );
});

test('pages have the default and the largest size of the interface', () => {
  const { listTopicFiles, getQueryResults, getQueryHistory } = contract.operations;
  const sizes = [
    listTopicFiles.parameters.query.properties.maxResults,
    getQueryResults.parameters.query.properties.maxResults,
    getQueryHistory.parameters.query.properties.maxResults,
    contract.types.StateListRequest.properties.limit,
  ].map((schema) => [
    Reflect.get(schema, 'default'),
    Reflect.get(schema, 'minimum'),
    Reflect.get(schema, 'maximum'),
  ]);
  assert.deepEqual(sizes, [
    [100, 1, 1000],
    [100, 1, 1000],
    [50, 1, 100],
    [50, 1, 1000],
  ]);
});

function* schemasWithin(value: unknown): Generator<Record<string, unknown>> {
  if (Array.isArray(value)) for (const item of value) yield* schemasWithin(item);
  if (!isRecord(value)) return;
  yield value;
  for (const child of Object.values(value)) yield* schemasWithin(child);
}

test('a server with lower limits keeps every default within its maximum', () => {
  const lowest: Limits = {
    ...defaultLimits,
    statePage: 5,
    filesPage: 5,
    resultsPage: 5,
    historyPage: 5,
    logsPage: 5,
    deadLettersPage: 5,
  };
  for (const schema of schemasWithin([buildContract(lowest).operations, buildContract(lowest).types])) {
    const { default: fallback, maximum } = schema;
    if (typeof fallback === 'number' && typeof maximum === 'number')
      assert.ok(fallback <= maximum, JSON.stringify(schema));
  }
});

test('no pattern takes long over hostile text', () => {
  const patterns = new Set<string>();
  for (const { pattern } of schemasWithin([contract.operations, contract.types])) {
    if (typeof pattern === 'string') patterns.add(pattern);
  }
  assert.ok(patterns.size > 5);
  for (const pattern of patterns) {
    const expression = new RegExp(pattern, 'u');
    for (const piece of ['/', 'a', '.', '@', '-', '~0', 'a@']) {
      // Short enough that an exponential pattern fails the test instead of hanging it.
      const began = performance.now();
      expression.test(`${piece.repeat(26)}~\u0000`);
      assert.ok(performance.now() - began < 100, `${pattern} over ${piece}`);
    }
  }
});

test('every pattern says in words what it asks for, as the end of a sentence', () => {
  const bodies = operations.map(({ body }) => body).filter((body) => body !== undefined && 'schema' in body);
  const parameters = operations.map((operation) => operation.parameters);
  for (const schema of schemasWithin([bodies, parameters])) {
    if (schema.pattern === undefined && schema.patternProperties === undefined) continue;
    const words = schema[names.patternWords];
    // Objects that take any name at all have nothing to say about it.
    if (schema.patternProperties !== undefined && schema.additionalProperties !== false) continue;
    assert.ok(typeof words === 'string', JSON.stringify(schema));
    assert.match(words, /^must .*[^.]$/);
  }
});

test('names follow their rules', () => {
  const cases: readonly (readonly [TSchema, readonly string[], readonly string[]])[] = [
    [
      names.OrganizationName,
      ['a', '9', 'Acme-1_x', 'a'.repeat(64)],
      ['', '-a', '_a', 'a.b', 'a b', 'a'.repeat(65), 'a\n'],
    ],
    [
      names.TopicName,
      ['a', '-a', 'a.b_c-d', 'default', 'a'.repeat(128)],
      ['', '.a', '_a', 'a/b', 'a'.repeat(129), 'é'],
    ],
    [names.TaskId, ['a', '_a', '-', 'a'.repeat(64)], ['', 'a.b', 'a'.repeat(65)]],
    [
      names.Username,
      ['ada', 'ada@example.com', 'Ünïcode', '!', 'a'.repeat(128)],
      ['', 'a b', 'a\tb', 'a\u0000', 'a'.repeat(129)],
    ],
  ];
  for (const [schema, good, bad] of cases) {
    const validator = Compile(schema);
    for (const name of good) assert.ok(validator.Check(name), `accepts ${JSON.stringify(name)}`);
    for (const name of bad) assert.ok(!validator.Check(name), `refuses ${JSON.stringify(name)}`);
  }
});

test('environment variables of a task have names that a process can have', () => {
  const { body } = contract.operations.deployVersion.example;
  const validator = Compile(contract.types.DeployRequest);
  assert.ok(validator.Check({ ...body, environment: { REGION: 'eu' } }));
  assert.ok(!validator.Check({ ...body, environment: { '1REGION': 'eu' } }));
  assert.ok(!validator.Check({ ...body, environment: { 'RE=GION': 'eu' } }));
});

test('what is missing is said before how to mend it', () => {
  assert.match(problems.SCHEMA_NOT_FOUND.explanation, /^The topic has no schema yet\. Upload one /);
  assert.match(problems.CREDENTIAL_MISSING.explanation, /^The request has no credential, .*\. Send /);
});
