import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { listOperations } from '@millrace/contract';
import { type Answer, address, checkProblem, contract, read } from './harness/client.ts';
import { exchange, openConnection } from './harness/connection.ts';
import { malformedRequests, smugglingRequests } from './harness/malformed.ts';
import { newOrganization, newPerson, type Person, password } from './harness/people.ts';
import { type RunningService, startService } from './harness/service.ts';

/** Headers that keep a browser from making more of an answer than it is. */
function checkSecurityHeaders(answer: Answer, what: string): void {
  const { headers } = answer;
  assert.ok(headers.get('x-request-id'), `${what} has a request id`);
  assert.equal(headers.get('x-content-type-options'), 'nosniff', what);
  assert.equal(headers.get('referrer-policy'), 'no-referrer', what);
  assert.match(headers.get('content-security-policy') ?? '', /default-src 'none'/, what);
  assert.match(headers.get('content-security-policy') ?? '', /frame-ancestors 'none'/, what);
  assert.ok(headers.get('cache-control'), what);
  for (const name of ['x-powered-by', 'server']) assert.equal(headers.get(name), null, `${what}: ${name}`);
}

describe('the HTTP service', () => {
  let service: RunningService;
  let person: Person;
  let organizationName: string;
  let strict: RunningService;
  const knownOrigin = 'https://app.example';
  before(async () => {
    [service, strict] = await Promise.all([
      startService(),
      startService({ environment: { MILLRACE_CORS_ORIGINS: `${knownOrigin}, https://other.example` } }),
    ]);
    person = await newPerson(service);
    organizationName = await newOrganization(service, person);
  });
  after(() => Promise.all([service.remove(), strict.remove()]));

  async function send(
    method: string,
    path: string,
    more: { headers?: Record<string, string>; body?: string | Uint8Array<ArrayBuffer> } = {},
  ): Promise<Answer> {
    return read(await fetch(`${service.url}${path}`, { method, redirect: 'manual', ...more }));
  }

  const bearer = () => ({ authorization: `Bearer ${person.accessToken}` });
  const json = { 'content-type': 'application/json' };
  const credentials = () => JSON.stringify({ usernameOrEmail: person.username, password });

  it('answers unknown paths with a 404 problem, whatever the method', async () => {
    const paths = ['/nowhere', '/v1', '/v1/', '/v2/health', '//v1/health', '/v1/health//', '/docs/../livez'];
    for (const path of paths) {
      for (const method of ['GET', 'POST', 'DELETE', 'OPTIONS']) {
        const { answers } = await exchange(
          service.url,
          `${method} ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n`,
        );
        const [answer] = answers;
        assert.ok(answer, `${method} ${path}`);
        checkProblem(answer);
        assert.equal(answer.body.code, 'NOT_FOUND', `${method} ${path}`);
      }
    }
  });

  it('answers a wrong method with 405 and the methods that the path has, with and without a slash', async () => {
    const methodsByPath = new Map<string, Set<string>>();
    for (const operation of listOperations(contract)) {
      if (operation.method === 'ANY') continue;
      const path = address(operation, { organizationName, topicName: 'default', taskId: 'a' });
      const bare = path.replace(/\/$/, '');
      const methods = methodsByPath.get(bare) ?? new Set(['OPTIONS']);
      methods.add(operation.method);
      if (operation.method === 'GET') methods.add('HEAD');
      methodsByPath.set(bare, methods);
    }
    assert.ok(methodsByPath.has(`/v1/organization/${organizationName}/topic/default`));
    for (const [path, methods] of methodsByPath) {
      for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD']) {
        if (methods.has(method)) continue;
        for (const slash of ['', '/']) {
          const answer = await send(method, `${path}${slash}`);
          assert.equal(answer.status, 405, `${method} ${path}${slash}`);
          const allow = (answer.headers.get('allow') ?? '').split(', ');
          assert.deepEqual(new Set(allow), methods, path);
          if (method !== 'HEAD') checkProblem(answer);
        }
      }
      const options = await send('OPTIONS', path);
      assert.equal(options.status, 204, path);
      assert.deepEqual(new Set((options.headers.get('allow') ?? '').split(', ')), methods, path);
    }
  });

  it('refuses TRACE and methods of other protocols with 405', async () => {
    for (const method of ['TRACE', 'PROPFIND', 'SEARCH', 'LINK']) {
      const bytes = `${method} /v1/health HTTP/1.1\r\nHost: a\r\nX-Secret: s3cret\r\n\r\n`;
      const { answers } = await exchange(service.url, bytes);
      assert.equal(answers[0]?.status, 405, method);
      checkProblem(answers[0]);
      assert.doesNotMatch(answers[0].text, /s3cret/);
    }
  });

  it('echoes a well-formed request id and makes one otherwise, the same in header and body', async () => {
    for (const id of ['a', 'trace-1.2_3', 'A'.repeat(64)]) {
      const answer = await send('GET', '/nowhere', { headers: { 'x-request-id': id } });
      assert.equal(answer.headers.get('x-request-id'), id);
      assert.equal(answer.body.requestId, id);
    }
    const made = new Set<string>();
    for (const id of ['', 'a b', 'A'.repeat(65), '"><script>', 'a,b', 'é', '../..']) {
      const answer = await send('GET', '/nowhere', { headers: { 'x-request-id': id } });
      checkProblem(answer);
      assert.notEqual(answer.body.requestId, id);
      assert.match(answer.body.requestId, /^[A-Za-z0-9_.-]{1,64}$/);
      made.add(answer.body.requestId);
    }
    assert.equal(made.size, 7, 'no request id is given twice');
  });

  it('answers malformed URLs with a complete 400 problem', async () => {
    const paths = [
      '/%zz',
      '/%',
      '/v1/organization/%ff/members',
      '/v1/organization/%c0%ae/members',
      '/v1/organization/%zz/members',
      '/v1/health?name=%zz',
      `/v1/organizations/create?organizationName=%ff`,
    ];
    for (const path of paths) {
      const { answers } = await exchange(
        service.url,
        `GET ${path} HTTP/1.1\r\nHost: a\r\nOrigin: https://app.example\r\n\r\n`,
      );
      const [answer] = answers;
      assert.ok(answer, path);
      assert.ok([400, 405].includes(answer.status), `${path}: ${answer.status}`);
      checkProblem(answer);
      checkSecurityHeaders(answer, path);
    }
    const long = await send('GET', `/v1/organization/${'a'.repeat(6000)}/members`, { headers: bearer() });
    assert.ok([400, 414].includes(long.status));
    checkProblem(long);
    checkSecurityHeaders(long, 'a long name');
  });

  it('answers what is no HTTP with a problem or ends the connection, and stays up', async (test) => {
    for (const { what, bytes, statuses, silence } of malformedRequests) {
      await test.test(what, async () => {
        const { answers, incomplete } = await exchange(service.url, bytes);
        assert.equal(incomplete, false);
        const [answer] = answers;
        if (answer === undefined) {
          assert.ok(silence, 'the connection ended without a word');
          return;
        }
        assert.ok(statuses.includes(answer.status), `${answer.status}`);
        checkProblem(answer);
      });
    }
    assert.equal((await send('GET', '/v1/health')).status, 200);
  });

  it('has security headers on answers to what is no HTTP, too', async () => {
    for (const { what, bytes } of malformedRequests) {
      const { answers } = await exchange(service.url, bytes);
      for (const answer of answers) checkSecurityHeaders(answer, what);
    }
  });

  it('does not let a second request hide in the body of the first', async () => {
    for (const { what, bytes } of smugglingRequests) {
      const { answers, closed } = await exchange(service.url, bytes, { answers: 3 });
      assert.ok(closed, what);
      for (const answer of answers) {
        assert.ok(answer.status >= 400, `${what}: ${answer.status}`);
        checkProblem(answer);
      }
    }
  });

  it('answers old and unusual but valid requests', async () => {
    const valid: [string, string][] = [
      ['HTTP/1.0', 'GET /v1/health HTTP/1.0\r\n\r\n'],
      [
        'an absolute URL',
        'GET http://elsewhere.example/v1/health HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n',
      ],
      [
        'an upgrade to websocket',
        'GET /v1/health HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n',
      ],
      [
        'an upgrade to HTTP/2',
        'GET /v1/health HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n',
      ],
      ['lower-case header names', 'GET /v1/health HTTP/1.1\r\nhost: a\r\n\r\n'],
      ['empty lines before', '\r\n\r\nGET /v1/health HTTP/1.1\r\nHost: a\r\n\r\n'],
    ];
    for (const [what, bytes] of valid) {
      const { answers } = await exchange(service.url, bytes);
      assert.equal(answers[0]?.status, 200, what);
      assert.equal(answers[0].body.status, 'ok', what);
    }
    const oldest = await exchange(service.url, 'GET /v1/health\r\n\r\n');
    assert.ok(oldest.closed || oldest.answers.length === 1, 'HTTP/0.9');
  });

  it('goes on after Expect: 100-continue, and refuses other expectations with a problem', async () => {
    const body = credentials();
    const head = `POST /v1/auth/sign-in HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n`;
    const connection = await openConnection(service.url);
    connection.send(`${head}Expect: 100-continue\r\n\r\n`);
    const [interim] = await connection.answered(1, 4000);
    assert.equal(interim?.status, 100);
    connection.send(body);
    const [, final] = await connection.answered(2, 8000);
    connection.destroy();
    assert.equal(final?.status, 200);

    const other = await exchange(service.url, `${head}Expect: miracles\r\n\r\n`);
    assert.equal(other.answers[0]?.status, 417);
    assert.match(other.answers[0].headers.get('content-type') ?? '', /^application\/problem\+json/);
  });

  it('has security headers on every kind of answer', async () => {
    const preflight = { origin: 'https://app.example', 'access-control-request-method': 'GET' };
    const answers: [string, Answer][] = [
      ['200', await send('GET', '/v1/health')],
      [
        'an empty 200',
        await send('PUT', `/v1/organizations/create?organizationName=h${process.pid}`, { headers: bearer() }),
      ],
      ['302', await send('GET', '/')],
      ['400', await send('POST', '/v1/auth/sign-in', { headers: json, body: '{' })],
      ['401', await send('GET', '/v1/auth/me')],
      ['404', await send('GET', '/nowhere')],
      ['405', await send('DELETE', '/v1/health')],
      ['413', await send('POST', '/v1/auth/sign-in', { headers: json, body: 'x'.repeat(300_000) })],
      [
        '415',
        await send('POST', '/v1/auth/sign-in', { headers: { 'content-type': 'text/css' }, body: 'a{}' }),
      ],
      ['a task endpoint', await send('GET', `/v1/organization/${organizationName}/endpoint/none/x`)],
      ['the documentation', await send('GET', '/docs')],
      ['the OpenAPI document', await send('GET', '/openapi.json')],
      ['figures', await send('GET', '/metrics')],
      ['keys', await send('GET', '/.well-known/jwks.json')],
      ['a file', await send('GET', '/v1/objects/nothing')],
      ['a preflight', await send('OPTIONS', '/v1/health', { headers: preflight })],
      ['HEAD', await send('HEAD', '/v1/health')],
    ];
    for (const [what, answer] of answers) {
      checkSecurityHeaders(answer, what);
      if (answer.status >= 400) checkProblem(answer);
    }
  });

  it('lets any page call it, and read the headers it needs', async () => {
    const origin = 'https://app.example';
    const preflight = await send('OPTIONS', `/v1/organization/${organizationName}/members`, {
      headers: {
        origin,
        'access-control-request-method': 'GET',
        'access-control-request-headers': 'authorization,content-type,invocationtype',
      },
    });
    assert.equal(preflight.status, 204);
    assert.equal(preflight.text, '');
    assert.equal(preflight.headers.get('access-control-allow-origin'), '*');
    assert.equal(preflight.headers.get('access-control-allow-credentials'), null);
    const allowed = (preflight.headers.get('access-control-allow-headers') ?? '').toLowerCase();
    for (const name of ['authorization', 'content-type', 'invocationtype'])
      assert.match(allowed, new RegExp(name));
    const methods = preflight.headers.get('access-control-allow-methods') ?? '';
    for (const name of ['GET', 'PUT', 'POST', 'PATCH', 'DELETE'])
      assert.match(methods, new RegExp(`\\b${name}\\b`));
    for (const path of ['/v1/health', '/nowhere', '/v1/auth/me', '/.well-known/jwks.json']) {
      const answer = await send('GET', path, { headers: { origin } });
      assert.equal(answer.headers.get('access-control-allow-origin'), '*', path);
      const exposed = (answer.headers.get('access-control-expose-headers') ?? '').split(', ');
      for (const name of ['x-request-id', 'retry-after', 'ratelimit', 'ratelimit-policy']) {
        assert.ok(exposed.includes(name), `${path} exposes ${name}`);
      }
    }
  });

  it('lets only the pages it is told of call it where it is told of some', async () => {
    const get = async (headers: Record<string, string>, path = '/v1/health', method = 'GET') =>
      (await fetch(`${strict.url}${path}`, { method, headers })).headers;
    assert.equal((await get({ origin: knownOrigin })).get('access-control-allow-origin'), knownOrigin);
    const strangers = [
      'https://evil.example',
      `${knownOrigin}.evil.example`,
      'http://app.example',
      'null',
      '*',
    ];
    for (const origin of strangers) {
      const ask = { origin, 'access-control-request-method': 'GET' };
      for (const headers of [await get({ origin }), await get(ask, '/v1/health', 'OPTIONS')]) {
        assert.equal(headers.get('access-control-allow-origin'), null, origin);
      }
    }
    // A cache must not give a page the answer that was made for nobody or for another page.
    for (const headers of [await get({ origin: knownOrigin }), await get({}, '/.well-known/jwks.json')]) {
      assert.match(headers.get('vary') ?? '', /origin/i);
    }
  });

  it('takes an empty body of any kind where an operation has none', async () => {
    const path = `/v1/organization/${organizationName}/auth/apikeys`;
    const head = `POST ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${person.accessToken}\r\n`;
    const types = [
      '',
      'application/json',
      'garbage',
      '///;;',
      'text/plain; charset=utf-16',
      'multipart/form-data',
    ];
    for (const type of types) {
      const typed = type === '' ? head : `${head}Content-Type: ${type}\r\n`;
      const endings = {
        'no length': '\r\n',
        'length 0': 'Content-Length: 0\r\n\r\n',
        'no chunks': 'Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
        'an empty object': 'Content-Length: 2\r\n\r\n{}',
      };
      for (const [what, ending] of Object.entries(endings)) {
        const { answers } = await exchange(service.url, `${typed}${ending}`);
        assert.equal(answers[0]?.status, 200, `${what} as "${type}": ${answers[0]?.text}`);
      }
    }
    const filled = await send('POST', path, { headers: { ...bearer(), ...json }, body: '{"all":true}' });
    assert.equal(filled.body.code, 'BODY_NOT_EXPECTED');
  });

  it('takes paths with and without a slash at the end', async () => {
    const paths = [
      '/v1/health',
      '/v1/auth/me',
      `/v1/organization/${organizationName}/ratelimit`,
      '/docs',
      '/livez',
    ];
    for (const path of paths) {
      const [bare, slashed] = [
        await send('GET', path, { headers: bearer() }),
        await send('GET', `${path}/`, { headers: bearer() }),
      ];
      assert.equal(bare.status, 200, path);
      assert.equal(slashed.status, 200, `${path}/`);
      assert.equal(bare.text, slashed.text, path);
    }
  });

  it('answers HEAD like GET without the body, and keeps the connection usable', async () => {
    for (const path of ['/v1/health', '/openapi.json', '/nowhere', '/docs']) {
      const get = await send('GET', path);
      const bytes = `HEAD ${path} HTTP/1.1\r\nHost: a\r\n\r\nGET /livez HTTP/1.1\r\nHost: a\r\n\r\n`;
      const { answers } = await exchange(service.url, bytes, { answers: 2, head: true });
      assert.equal(answers[0]?.status, get.status, path);
      assert.equal(answers[0].headers.get('content-type'), get.headers.get('content-type'), path);
      assert.equal(answers[1]?.status, 200, path);
    }
  });

  it('answers pipelined requests in order, also behind a refused body', async () => {
    const health = 'GET /v1/health HTTP/1.1\r\nHost: a\r\n\r\n';
    const signIn = `POST /v1/auth/sign-in HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${credentials().length}\r\n\r\n${credentials()}`;
    const refused = 'POST /v1/auth/totp HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123456789';
    const chunked =
      'POST /nowhere HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n';
    const bytes = [health, signIn, health, refused, health, chunked, health].join('');
    const { answers } = await exchange(service.url, bytes, { answers: 7, milliseconds: 10_000 });
    assert.deepEqual(
      answers.map((answer) => answer.status),
      [200, 200, 200, 401, 200, 404, 200],
    );
    assert.ok(answers[1]?.text.includes('accessToken'), 'the slow answer keeps its place');
  });

  it('keeps a connection for further requests, and ends it when asked to', async () => {
    const connection = await openConnection(service.url);
    for (let count = 1; count <= 20; count += 1) {
      connection.send('GET /v1/health HTTP/1.1\r\nHost: a\r\n\r\n');
      const answers = await connection.answered(count, 4000);
      assert.equal(answers.length, count);
    }
    connection.send('GET /v1/health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
    await connection.closed(4000);
    assert.equal(connection.received().answers.length, 21);
  });

  it('refuses a body over its limit with 413, announced, chunked or sent in full', async () => {
    const head = 'POST /v1/auth/sign-in HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n';
    const large = 'x'.repeat(contract.limits.requestBytes + 1);
    const next = 'GET /v1/health HTTP/1.1\r\nHost: a\r\n\r\n';
    const ways = {
      announced: `${head}Content-Length: 99999999\r\n\r\n`,
      'sent in full': `${head}Content-Length: ${large.length}\r\n\r\n${large}${next}`,
      'in one chunk': `${head}Transfer-Encoding: chunked\r\n\r\n${large.length.toString(16)}\r\n${large}\r\n0\r\n\r\n${next}`,
      'in small chunks': `${head}Transfer-Encoding: chunked\r\n\r\n${'3e8\r\n'.concat('y'.repeat(1000), '\r\n').repeat(300)}0\r\n\r\n${next}`,
    };
    for (const [what, bytes] of Object.entries(ways)) {
      const { answers } = await exchange(service.url, bytes);
      assert.equal(answers[0]?.status, 413, what);
      checkProblem(answers[0]);
      assert.ok(answers[0].body.detail.includes(String(contract.limits.requestBytes)), what);
    }
    const exact = JSON.stringify({ usernameOrEmail: 'a', password: 'b' }).padEnd(
      contract.limits.requestBytes,
      ' ',
    );
    assert.equal((await send('POST', '/v1/auth/sign-in', { headers: json, body: exact })).status, 200);
  });

  it('tells a client about its limit even while the client still sends', async () => {
    for (let round = 0; round < 5; round += 1) {
      const answer = await send('POST', '/v1/auth/sign-in', {
        headers: json,
        body: 'x'.repeat(8 * 1024 * 1024),
      });
      assert.equal(answer.status, 413);
    }
  });

  it('reads JSON as everybody does: a byte order mark is skipped and the last of equal keys counts', async () => {
    const marked = await send('POST', '/v1/auth/sign-in', { headers: json, body: `\uFEFF${credentials()}` });
    assert.equal(marked.status, 200);
    assert.ok(marked.text.includes('accessToken'));
    const twice = `{"password":"not this one","usernameOrEmail":"${person.username}","password":"${password}"}`;
    const answer = await send('POST', '/v1/auth/sign-in', { headers: json, body: twice });
    assert.ok(answer.text.includes('accessToken'));
  });

  it('refuses hostile JSON in words and at once', async () => {
    const depth = 10_000;
    const bodies: [string, string | Uint8Array<ArrayBuffer>][] = [
      ['arrays nested deeply', '['.repeat(depth) + ']'.repeat(depth)],
      ['objects nested deeply', `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`],
      [
        'a field nested deeply',
        `{"usernameOrEmail":${'['.repeat(depth)}${']'.repeat(depth)},"password":"x"}`,
      ],
      ['a prototype', '{"__proto__":{"admin":true},"usernameOrEmail":"a","password":"b"}'],
      ['a constructor', '{"constructor":{"prototype":{"admin":true}},"usernameOrEmail":"a","password":"b"}'],
      ['thousands of fields', `{${Array.from({ length: 10_000 }, (_each, at) => `"f${at}":1`).join(',')}}`],
      ['bytes that are no UTF-8', new Uint8Array([0x22, 0xff, 0xfe, 0x22])],
      ['two documents', `${credentials()}${credentials()}`],
      ['nothing but space', '   '],
      ['a number beyond numbers', '1e999'],
      ['not quite JSON', "{'usernameOrEmail': 'a'}"],
    ];
    for (const [what, body] of bodies) {
      const started = performance.now();
      const answer = await send('POST', '/v1/auth/sign-in', { headers: json, body });
      assert.equal(answer.status, 400, what);
      checkProblem(answer);
      assert.ok(answer.text.length < 20_000, `${what}: a short answer`);
      assert.ok(performance.now() - started < 2000, `${what}: at once`);
    }
  });
});
