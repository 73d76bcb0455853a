import assert from 'node:assert/strict';
import {
  type AnswerOf,
  type BodyOf,
  buildContract,
  type Operation,
  type OperationId,
  type Operations,
  type ProblemCode,
  problems,
  type QueryOf,
} from '@millrace/contract';
import { Compile, type Validator } from 'typebox/compile';

export const contract = buildContract();

export interface ProblemBody {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: ProblemCode;
  readonly requestId: string;
  readonly error: string;
  readonly errors?: readonly { readonly pointer: string; readonly message: string }[];
}

/** What was answered. The body is either what the operation gives or a problem: the test says which it expects. */
export interface Answer<Body = unknown> {
  readonly status: number;
  readonly headers: Headers;
  /** The JSON body, or undefined for an empty one. */
  readonly body: ([Body] extends [undefined | string] ? unknown : Body) & ProblemBody;
  readonly text: string;
}

export interface RequestParts<Id extends OperationId> {
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: QueryOf<Operations[Id]> | Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: BodyOf<Operations[Id]>;
  /** An access token or API key, sent as a bearer. */
  readonly token?: string | undefined;
}

/**
 * Calls an operation as the contract describes it, and holds every answer to the contract: a status it
 * names with a body of its schema, or a well-formed problem.
 */
export async function call<Id extends OperationId>(
  url: string,
  id: Id,
  parts: RequestParts<Id> = {},
): Promise<Answer<AnswerOf<Operations[Id]>['body']>> {
  const operation: Operation = contract.operations[id];
  const headers: Record<string, string> = { ...parts.headers };
  if (parts.token !== undefined) headers.authorization = `Bearer ${parts.token}`;
  if (parts.body !== undefined) headers['content-type'] = 'application/json';
  const response = await fetch(`${url}${address(operation, parts.path ?? {}, parts.query ?? {})}`, {
    method: operation.method,
    headers,
    ...(parts.body === undefined ? {} : { body: JSON.stringify(parts.body) }),
  });
  const answer = await read<AnswerOf<Operations[Id]>['body']>(response);
  checkAnswer(operation, answer);
  return answer;
}

/** The path and query of a request to an operation. */
export function address(
  operation: Operation,
  path: Readonly<Record<string, string>>,
  query: object = {},
): string {
  const filled = operation.path.replace(/\{(\w+)\}|\*/g, (_match, name: string | undefined) =>
    encodeURIComponent(path[name ?? '*'] ?? 'missing'),
  );
  const search = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)]));
  return search.size === 0 ? filled : `${filled}?${search}`;
}

export async function read<Body = unknown>(response: Response): Promise<Answer<Body>> {
  const text = await response.text();
  const type = response.headers.get('content-type') ?? '';
  const body = /json/.test(type) && text !== '' ? JSON.parse(text) : undefined;
  return { status: response.status, headers: response.headers, body, text };
}

const validators = new Map<string, Validator>();

/** Fails when an answer is not one that the contract allows. */
export function checkAnswer(operation: Operation, answer: Answer): void {
  assert.ok(answer.headers.get('x-request-id'), `${operation.id} answers a request id`);
  const expected = operation.responses[answer.status];
  if (expected === undefined) {
    checkProblem(answer);
    return;
  }
  if (expected.schema === undefined) {
    if (expected.mediaTypes === undefined) assert.equal(answer.text, '', `${operation.id} answers nothing`);
    return;
  }
  const name = `${operation.id} ${answer.status}`;
  const validator = validators.get(name) ?? Compile(expected.schema);
  validators.set(name, validator);
  const errors = validator.Check(answer.body) ? [] : validator.Errors(answer.body);
  assert.deepEqual(errors, [], `${name} answers as its schema says: ${answer.text}`);
}

/** Fails when an answer is not a well-formed problem of the catalogue. */
export function checkProblem(answer: Answer): void {
  assert.match(answer.headers.get('content-type') ?? '', /^application\/problem\+json/);
  const { body } = answer;
  assert.ok(body.code in problems, `the code ${body.code} is in the catalogue`);
  assert.equal(body.status, answer.status);
  assert.equal(body.error, body.detail);
  assert.equal(body.requestId, answer.headers.get('x-request-id'));
  assert.match(body.type, /^\/docs\/errors\/[a-z-]+$/);
  assert.ok(typeof body.title === 'string' && body.title.length > 0);
  assert.ok(typeof body.detail === 'string' && body.detail.length > 0);
  assert.doesNotMatch(answer.text, /node_modules|\.ts:\d|SQLITE|select .* from/i);
}
