import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Problem } from '../../platform/problem.ts';
import type { InvocationResult, TaskPool } from '../execution/execution.ts';
import { type Cors, preflightAnswer } from './cors.ts';
import { endpointRequest } from './endpoint.fixture.ts';
import { callEndpoint, type EndpointSettings } from './endpoint.ts';
import type { EndpointRequest } from './endpoint-request.ts';
import type { FunctionUrlEvent } from './function-url-event.ts';

const shopOnly: Cors = {
  allowOrigins: ['https://shop.example.com', 'http://localhost:3000'],
  allowMethods: ['GET', 'post'],
  allowHeaders: ['content-type', 'x-token'],
  exposeHeaders: ['x-total'],
  allowCredentials: true,
  maxAge: 300,
};
const anybody: Cors = {
  allowOrigins: ['*'],
  allowMethods: ['*'],
  allowHeaders: ['*'],
  exposeHeaders: [],
  allowCredentials: false,
  maxAge: 0,
};

type Answer = (event: FunctionUrlEvent) => unknown;

/** A pool in which a function answers: processes and their bounds are tested with the execution. */
function poolOf(answer: Answer): Pick<TaskPool, 'invoke'> {
  return {
    invoke: async ({ event }) => {
      const payload = Buffer.from(
        JSON.stringify(answer(JSON.parse(Buffer.from(event).toString()))) ?? 'null',
      );
      return { outcome: 'success', payload, durationMs: 1 };
    },
  };
}

function failing(kind: (InvocationResult & { outcome: 'failure' })['kind']): Pick<TaskPool, 'invoke'> {
  const error = { type: 'TypeError', message: 'secret is not a function', trace: ['at /srv/secret.js'] };
  return { invoke: async () => ({ outcome: 'failure', kind, error, durationMs: 1 }) };
}

function call(
  pool: Pick<TaskPool, 'invoke'>,
  request: Partial<EndpointRequest> = {},
  settings: EndpointSettings = { isPublic: true },
) {
  return callEndpoint({
    request: endpointRequest(request),
    settings,
    pool,
    mostAnswerBytes: 10_000,
    isOurCredential: (authorization) => authorization.startsWith('Bearer mr_'),
  });
}

async function answerOf(...given: Parameters<typeof call>) {
  const made = await call(...given);
  assert.ok(!(made instanceof Problem), JSON.stringify(made));
  return { ...made, headers: Object.fromEntries(made.headers), body: Buffer.from(made.body).toString() };
}

async function problemOf(...given: Parameters<typeof call>): Promise<Problem> {
  const made = await call(...given);
  assert.ok(made instanceof Problem, JSON.stringify(made));
  return made;
}

const from = (origin: string, ...more: string[]) => ({ rawHeaders: ['Origin', origin, ...more] });

describe('a call of an endpoint', () => {
  it('answers with what the task answers to the event', async () => {
    const made = await answerOf(
      poolOf(({ rawPath, requestContext }) => ({
        statusCode: 203,
        body: `${requestContext.http.method} ${rawPath}`,
      })),
      { method: 'PATCH', path: '/a/b' },
    );
    assert.deepEqual([made.status, made.body], [203, 'PATCH /a/b']);
  });

  it('is a problem when the task fails, and does not tell what the task said', async () => {
    const expected = [
      ['error', 'TASK_FAILED'],
      ['crash', 'TASK_FAILED'],
      ['timeout', 'TASK_TIMED_OUT'],
      ['unavailable', 'OVERLOADED'],
    ] as const;
    for (const [kind, code] of expected) {
      const made = await problemOf(failing(kind), from('https://shop.example.com'), {
        isPublic: true,
        cors: shopOnly,
      });
      assert.equal(made.code, code);
      assert.doesNotMatch(JSON.stringify(made), /secret/);
      assert.equal(made.headers?.['access-control-allow-origin'], 'https://shop.example.com');
    }
    assert.equal((await problemOf(failing('unavailable'))).retryAfterSeconds, 1);
  });

  it('is a problem when the answer is malformed or too large', async () => {
    const malformed = await problemOf(poolOf(() => ({ statusCode: 1 })));
    assert.equal(malformed.code, 'TASK_FAILED');
    assert.match(malformed.detail, /^The answer of the task has a statusCode/);
    const large = await problemOf(poolOf(() => 'x'.repeat(10_000)));
    assert.equal(large.detail, 'The answer of the task has more than 10000 bytes.');
    assert.equal((await answerOf(poolOf(() => 'x'.repeat(9_998)))).status, 200);
  });

  it('passes on no credential for the service, and any other on a public endpoint', async () => {
    const seen = async (authorization: string, isPublic: boolean) => {
      const pool = poolOf(({ headers }) => headers.authorization ?? 'none');
      return JSON.parse(
        (await answerOf(pool, { rawHeaders: ['authorization', authorization] }, { isPublic })).body,
      );
    };
    assert.equal(await seen('Basic x', true), 'Basic x');
    assert.equal(await seen('Bearer mr_key', true), 'none');
    assert.equal(await seen('Bearer mr_key', false), 'none');
    assert.equal(await seen('Basic x', false), 'none');
  });

  it('puts pages into a sandbox, since they share their origin with the service', async () => {
    const page = await answerOf(
      poolOf(() => ({ statusCode: 200, headers: { 'content-type': 'text/html' } })),
    );
    assert.match(page.headers['content-security-policy'] ?? '', /^sandbox [a-z -]*allow-scripts/);
    assert.doesNotMatch(page.headers['content-security-policy'] ?? '', /allow-same-origin/);
    const headers = { 'Content-Security-Policy': "default-src 'self'", 'Cache-Control': 'max-age=60' };
    const own = await answerOf(poolOf(() => ({ statusCode: 200, headers })));
    assert.match(own.headers['content-security-policy'] ?? '', /^default-src 'self', sandbox /);
    assert.equal(own.headers['cache-control'], 'max-age=60');
    assert.equal(page.headers['cache-control'], 'no-store');
  });
});

describe('calls from other origins', () => {
  const pool = poolOf(() => ({
    statusCode: 200,
    headers: { 'Access-Control-Allow-Origin': 'https://evil.example' },
  }));

  it('are allowed as deployed, whatever the task says', async () => {
    const settings = { isPublic: true, cors: shopOnly };
    const allowed = await answerOf(pool, from('https://shop.example.com'), settings);
    assert.equal(allowed.headers['access-control-allow-origin'], 'https://shop.example.com');
    assert.equal(allowed.headers['access-control-allow-credentials'], 'true');
    assert.equal(allowed.headers['access-control-expose-headers'], 'x-total');
    assert.equal(allowed.headers.vary, 'origin');
    for (const request of [
      from('https://evil.example'),
      from('https://shop.example.com.evil.example'),
      from('null'),
      {},
    ]) {
      const { headers } = await answerOf(pool, request, settings);
      assert.deepEqual(
        Object.keys(headers).filter((name) => name.startsWith('access-control-')),
        [],
      );
    }
  });

  it('are left to the task where nothing was deployed', async () => {
    const { headers } = await answerOf(pool, from('https://evil.example'));
    assert.equal(headers['access-control-allow-origin'], 'https://evil.example');
    const asked = { method: 'OPTIONS', ...from('https://a.example', 'Access-Control-Request-Method', 'GET') };
    assert.equal(preflightAnswer(endpointRequest(asked), undefined), undefined);
  });

  it('may come from anywhere where a star says so', async () => {
    const { headers } = await answerOf(pool, from('https://any.example'), { isPublic: true, cors: anybody });
    assert.equal(headers['access-control-allow-origin'], '*');
    assert.equal(headers['access-control-allow-credentials'], undefined);
    const cors = { ...anybody, allowCredentials: true };
    const named = await answerOf(pool, from('https://any.example'), { isPublic: true, cors });
    assert.equal(named.headers['access-control-allow-origin'], 'https://any.example');
  });

  function preflight(cors: Cors, origin: string, method: string, headers?: string) {
    const more = headers === undefined ? [] : ['Access-Control-Request-Headers', headers];
    const rawHeaders = ['Origin', origin, 'Access-Control-Request-Method', method, ...more];
    const made = preflightAnswer(endpointRequest({ method: 'OPTIONS', rawHeaders }), cors);
    assert.equal(made?.status, 204);
    return Object.fromEntries(made?.headers ?? []);
  }

  it('are asked for by browsers, and answered without the task', () => {
    assert.deepEqual(preflight(shopOnly, 'http://localhost:3000', 'POST', 'x-token'), {
      vary: 'origin, access-control-request-method, access-control-request-headers',
      'cache-control': 'no-store',
      'access-control-allow-origin': 'http://localhost:3000',
      'access-control-allow-credentials': 'true',
      'access-control-allow-methods': 'GET, post',
      'access-control-allow-headers': 'content-type, x-token',
      'access-control-max-age': '300',
    });
    const any = preflight(anybody, 'https://any.example', 'DELETE', 'x-a, x-b');
    assert.equal(any['access-control-allow-origin'], '*');
    assert.equal(any['access-control-allow-methods'], 'DELETE');
    assert.equal(any['access-control-allow-headers'], 'x-a, x-b');
    assert.equal(preflight(anybody, 'https://any.example', 'GET')['access-control-allow-headers'], undefined);
    for (const [origin, method] of [
      ['https://evil.example', 'GET'],
      ['http://localhost:3000', 'DELETE'],
    ] as const) {
      assert.deepEqual(Object.keys(preflight(shopOnly, origin, method)), ['vary', 'cache-control']);
    }
  });

  it('are told from an OPTIONS that is meant for the task', () => {
    const ask = ['Access-Control-Request-Method', 'GET'];
    for (const request of [
      { method: 'OPTIONS', rawHeaders: ['Origin', 'https://a.example'] },
      { method: 'OPTIONS', rawHeaders: ask },
      { method: 'GET', rawHeaders: ['Origin', 'https://a.example', ...ask] },
    ]) {
      assert.equal(preflightAnswer(endpointRequest(request), anybody), undefined);
    }
  });
});
