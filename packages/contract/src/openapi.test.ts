import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Validator } from '@seriousme/openapi-schema-validator';
import { Compile } from 'typebox/compile';
import {
  buildContract,
  listOperations,
  openApiDocument,
  openApiPath,
  problemCodes,
  problems,
  problemType,
} from './index.ts';
import type { OpenApiOperation } from './openapi/document.ts';
import { Problem, problemExample } from './openapi/problem-responses.ts';

const contract = buildContract();
const document = openApiDocument(contract, { version: '0.1.0', serverUrl: 'http://127.0.0.1:8080' });
const described = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
);

function find(operationId: string): OpenApiOperation {
  const found = described.find(({ operation }) => operation.operationId === operationId);
  assert.ok(found, operationId);
  return found.operation;
}

test('the document is valid OpenAPI 3.1', async (context) => {
  const validator = new Validator();
  const onTheWire: Record<string, unknown> = JSON.parse(JSON.stringify(document));
  const { valid, errors } = await validator.validate(onTheWire);
  assert.ok(valid, JSON.stringify(errors, undefined, 2)?.slice(0, 4000));
  assert.equal(validator.version, '3.1');
  context.diagnostic(`${described.length} operations in ${Object.keys(document.paths).length} paths`);
});

test('every operation is there under its method and path, the one of any method five times', () => {
  const expected = listOperations(contract).flatMap(({ id, method, path }) =>
    method === 'ANY'
      ? ['Get', 'Put', 'Post', 'Patch', 'Delete'].map(
          (name) => `${id}${name} ${name.toLowerCase()} ${openApiPath(path)}`,
        )
      : [`${id} ${method.toLowerCase()} ${openApiPath(path)}`],
  );
  const actual = described.map(({ path, method, operation }) => `${operation.operationId} ${method} ${path}`);
  assert.deepEqual(actual.toSorted(), expected.toSorted());
  assert.equal(new Set(described.map(({ operation }) => operation.operationId)).size, described.length);
});

test('a trailing slash of a path is kept', () => {
  assert.ok('/v1/organization/{organizationName}/control/task/{taskId}/status/' in document.paths);
});

test('path parameters match the templates, and the rest of a path is named path', () => {
  for (const { path, operation } of described) {
    const inPath = [...path.matchAll(/\{([^}]*)\}/g)].map(([, name]) => name);
    const declared = (operation.parameters ?? []).filter((parameter) => parameter.in === 'path');
    assert.deepEqual(
      declared.map(({ name }) => name),
      inPath,
    );
    assert.ok(declared.every(({ required }) => required));
  }
  assert.deepEqual(
    find('taskEndpointGet').parameters?.map(({ name }) => name),
    ['organizationName', 'taskId', 'path'],
  );
});

test('headers go by the name that clients send', () => {
  const header = find('deployVersion').parameters?.find((parameter) => parameter.in === 'header');
  assert.deepEqual(
    { name: header?.name, required: header?.required, example: header?.example },
    { name: 'InvocationType', required: true, example: 'RequestResponse' },
  );
});

/** Every `$ref` anywhere inside a value. */
function referencesWithin(value: unknown): readonly string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, child]) =>
    key === '$ref' && typeof child === 'string' ? [child] : referencesWithin(child),
  );
}

test('every reference leads somewhere and every component is used', () => {
  const references = new Set(referencesWithin(document));
  const { schemas, responses, headers } = document.components;
  const components = Object.entries({ schemas, responses, headers }).flatMap(([kind, entries]) =>
    Object.keys(entries).map((name) => `#/components/${kind}/${name}`),
  );
  assert.deepEqual([...references].toSorted(), components.toSorted());
});

test('named types are referred to wherever they occur, also inside each other and when optional', () => {
  const body = find('updateTopic').requestBody?.content['application/json']?.schema;
  assert.deepEqual(body, { $ref: '#/components/schemas/Topic' });
  const topics = JSON.stringify(document.components.schemas.Topics);
  assert.equal(topics.split('"$ref":"#/components/schemas/Topic"').length - 1, 2);
  assert.ok(!topics.includes('retentionInDays'));
  assert.ok(
    JSON.stringify(document.components.schemas.SignInResponse).includes('#/components/schemas/SignInResult'),
  );
  assert.ok(JSON.stringify(document.components.schemas.Members).includes('#/components/schemas/Member'));
});

function hasExample(operation: OpenApiOperation): boolean {
  const contents = [
    operation.requestBody?.content,
    ...Object.values(operation.responses).map((response) =>
      'content' in response ? response.content : undefined,
    ),
  ];
  return (
    (operation.parameters ?? []).some(({ example }) => example !== undefined) ||
    contents.some((content) => Object.values(content ?? {}).some(({ example }) => example !== undefined))
  );
}

test('every operation shows an example, and every required parameter and JSON body has one', () => {
  for (const { operation } of described) {
    assert.ok(hasExample(operation), operation.operationId);
    for (const { name, required, example } of operation.parameters ?? []) {
      if (required) assert.notEqual(example, undefined, `${operation.operationId} ${name}`);
    }
    const json = operation.requestBody?.content['application/json'];
    if (json !== undefined) assert.notEqual(json.example, undefined, operation.operationId);
  }
});

test('a batch of messages is shown as lines and as an array', () => {
  const content = find('messages').requestBody?.content;
  assert.equal(
    content?.['application/x-ndjson']?.example,
    '{"user":"u1","id":"c-1","page":"/"}\n{"user":"u2","id":"c-2","page":"/pricing"}\n',
  );
  assert.ok(Array.isArray(content?.['application/json']?.example));
});

test('public operations ask for no credential, the others for a bearer token', () => {
  assert.deepEqual(find('signIn').security, []);
  assert.deepEqual(find('getTopics').security, [{ bearer: [] }]);
  assert.deepEqual(find('taskEndpointPost').security, [{ bearer: [] }, {}]);
  assert.deepEqual(find('message')['x-millrace-access'], contract.operations.message.access);
});

test('the problems of an operation follow from its access, its body and its own list', () => {
  const statuses = (operationId: string) => Object.keys(find(operationId).responses).join(' ');
  assert.equal(statuses('ping'), '200 400 500 503');
  assert.equal(statuses('signIn'), '200 400 413 415 429 500 503');
  assert.equal(statuses('whoAmI'), '200 400 401 403 500 503');
  assert.equal(statuses('getTopics'), '200 400 401 403 404 429 500 503');
  assert.equal(statuses('updateTopic'), '200 400 401 403 404 409 413 415 429 500 503');
  assert.equal(statuses('updateTopicSchema'), '200 201 400 401 403 404 413 415 422 429 500 503');
  assert.equal(statuses('taskEndpointGet'), '200 400 401 403 404 413 429 500 502 503 504');
});

test('every problem response has one example for each code, as the catalogue has it', () => {
  const validator = Compile(Problem);
  for (const [name, response] of Object.entries(document.components.responses)) {
    const content = response.content?.['application/problem+json'];
    assert.deepEqual(content?.schema, { $ref: '#/components/schemas/Problem' }, name);
    const examples = Object.entries(content?.examples ?? {});
    assert.ok(examples.length > 0, name);
    for (const [code, { value }] of examples) {
      assert.ok(validator.Check(value), code);
      assert.equal(name, `Problem${value.status}`);
      assert.equal(value.code, code);
    }
  }
  for (const code of problemCodes) {
    const { type, title, status } = problemExample(code);
    assert.deepEqual(
      { type, title, status },
      { type: problemType(code), title: problems[code].title, status: problems[code].status },
    );
  }
});

test('answers carry the request id, those of organizations the rate limit, refusals Retry-After', () => {
  const headersOf = (operationId: string) => {
    const response = find(operationId).responses['200'];
    return response !== undefined && 'headers' in response ? Object.keys(response.headers ?? {}) : [];
  };
  assert.deepEqual(headersOf('ping'), ['x-request-id']);
  assert.deepEqual(headersOf('getTopics'), ['x-request-id', 'RateLimit', 'RateLimit-Policy']);
  const { Problem429, Problem503, Problem400 } = document.components.responses;
  assert.ok('Retry-After' in (Problem429?.headers ?? {}));
  assert.ok('Retry-After' in (Problem503?.headers ?? {}));
  assert.deepEqual(Object.keys(Problem400?.headers ?? {}), ['x-request-id']);
});

test('the same contract gives the same document, byte for byte', () => {
  const again = openApiDocument(buildContract(), { version: '0.1.0', serverUrl: 'http://127.0.0.1:8080' });
  assert.equal(JSON.stringify(again), JSON.stringify(document));
});
