import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { after, describe, it } from 'node:test';
import { Millrace, MillraceError } from './index.ts';

const closing: (() => void)[] = [];
after(() => {
  for (const close of closing) close();
});

/** An HTTP server that answers as it is told, and counts. */
async function serverThat(
  answer: (request: IncomingMessage, response: ServerResponse, count: number) => void,
) {
  let count = 0;
  const server = createServer((request, response) => {
    count += 1;
    request.resume().on('end', () => answer(request, response, count));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closing.push(() => {
    server.close();
    server.closeAllConnections();
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server has no port');
  return { endpoint: `http://127.0.0.1:${address.port}`, count: () => count };
}

function problem(
  response: ServerResponse,
  status: number,
  code: string,
  headers: Record<string, string> = {},
) {
  response.writeHead(status, {
    'content-type': 'application/problem+json',
    'x-request-id': 'r1',
    ...headers,
  });
  response.end(
    JSON.stringify({ status, code, detail: 'Try again.', errors: [{ pointer: '/a', message: 'b' }] }),
  );
}

function clientOf(endpoint: string): Millrace {
  return new Millrace({
    endpoint,
    apiKey: 'mr_key',
    organization: 'acme',
    retry: { firstDelayMilliseconds: 1, longestDelayMilliseconds: 2_000 },
  });
}

describe('a call that fails', () => {
  it('is tried again when the service is overloaded, whatever the call, and waits as long as it is asked to', async () => {
    const server = await serverThat((_request, response, count) => {
      if (count === 1) return problem(response, 503, 'OVERLOADED', { 'retry-after': '1' });
      if (count === 2) return problem(response, 429, 'RATE_LIMITED', { 'retry-after': '0' });
      response.end('{"queryExecutionId":"q1"}');
    });
    const started = performance.now();
    assert.equal(await clientOf(server.endpoint).queries.submit('SELECT 1'), 'q1');
    assert.equal(server.count(), 3);
    assert.ok(performance.now() - started >= 990, 'Retry-After was honoured');
  });

  it('tells before every wait why and how long', async () => {
    const server = await serverThat((_request, response, count) => {
      if (count === 1) return problem(response, 503, 'OVERLOADED', { 'retry-after': '1' });
      if (count === 2) return problem(response, 429, 'RATE_LIMITED');
      response.end('{"version":1}');
    });
    const told: [string, number][] = [];
    const client = new Millrace({
      endpoint: server.endpoint,
      organization: 'acme',
      retry: {
        firstDelayMilliseconds: 1,
        onRetry: ({ error, delayMilliseconds }) => told.push([error.code, delayMilliseconds]),
      },
    });
    await client.topics.definitions();
    assert.deepEqual(
      told.map(([code]) => code),
      ['OVERLOADED', 'RATE_LIMITED'],
    );
    assert.equal(told[0]?.[1], 1_000);
    assert.ok((told[1]?.[1] ?? 0) <= 2);
  });

  it('is not tried again when the service asks for more patience than the caller has', async () => {
    const server = await serverThat((_request, response) =>
      problem(response, 429, 'RATE_LIMITED', { 'retry-after': '60' }),
    );
    await assert.rejects(clientOf(server.endpoint).queries.submit('SELECT 1'), (error) => {
      assert.ok(error instanceof MillraceError);
      assert.deepEqual(
        [error.code, error.status, error.requestId, error.retryAfterSeconds],
        ['RATE_LIMITED', 429, 'r1', 60],
      );
      assert.deepEqual(error.errors, [{ pointer: '/a', message: 'b' }]);
      return true;
    });
    assert.equal(server.count(), 1);
  });

  it('is repeated after a broken connection only where twice is the same as once', async () => {
    const server = await serverThat((request, response, count) => {
      if (count % 2 === 1) request.socket.destroy();
      else response.end('{"version":1}');
    });
    const client = clientOf(server.endpoint);
    await client.topics.definitions();
    assert.equal(server.count(), 2);
    await client.topics.publish('clicks', { a: 1 }, { key: 'k' });
    assert.equal(server.count(), 4);
    await client.state.set(['a'], {});
    assert.equal(server.count(), 6);
    const unsafe = [
      () => client.state.increment(['a'], 'n'),
      () => client.queries.submit('SELECT 1'),
      () => client.keys.create({ description: '' }),
      () => client.organizations.create('acme'),
      () => client.state.set(['a'], {}, { expectedVersion: 1 }),
      () => client.topics.publishMany('clicks', [{ a: 1 }]),
    ];
    for (const [index, call] of unsafe.entries()) {
      await assert.rejects(call(), { code: 'NETWORK', status: 0 });
      assert.equal(server.count(), 7 + 2 * index);
      await client.topics.definitions();
    }
  });

  it('sends a message again under the same id', async () => {
    const ids: (string | null)[] = [];
    const server = await serverThat((request, response, count) => {
      ids.push(new URL(request.url ?? '', 'http://localhost').searchParams.get('messageId'));
      if (count === 1) request.socket.destroy();
      else response.end('{"messageId":"m","duplicate":true}');
    });
    await clientOf(server.endpoint).topics.publish('clicks', 'text', { key: 'k' });
    assert.equal(ids.length, 2);
    assert.ok(ids[0] !== null && ids[0] === ids[1]);
  });

  it('gives up on other answers at once', async () => {
    const server = await serverThat((_request, response) => problem(response, 500, 'INTERNAL'));
    await assert.rejects(clientOf(server.endpoint).topics.definitions(), { code: 'INTERNAL' });
    assert.equal(server.count(), 1);
  });

  it('ends with the reason of its signal, also while it waits to be tried again', async () => {
    const server = await serverThat((_request, response) =>
      problem(response, 503, 'OVERLOADED', { 'retry-after': '2' }),
    );
    const signal = AbortSignal.timeout(50);
    await assert.rejects(clientOf(server.endpoint).topics.definitions({ signal }), { name: 'TimeoutError' });
  });

  it('says so when nobody listens', async () => {
    const client = new Millrace({ endpoint: 'http://127.0.0.1:1', retry: { attempts: 1 } });
    await assert.rejects(client.ping(), /could not be reached/);
  });
});

describe('a session', () => {
  it('is refreshed once however many calls need it, and the calls are made again', async () => {
    let refreshed = 0;
    const server = await serverThat((request, response) => {
      if (request.url === '/v1/auth/sign-in/refresh') {
        refreshed += 1;
        setTimeout(
          () => response.end('{"result":{"accessToken":"new","refreshToken":"r2","idToken":"i"}}'),
          20,
        );
      } else if (request.headers.authorization === 'Bearer new') response.end('{"version":1}');
      else problem(response, 401, 'CREDENTIAL_INVALID');
    });
    const kept: string[] = [];
    const client = new Millrace({
      endpoint: server.endpoint,
      organization: 'acme',
      session: { accessToken: 'old', refreshToken: 'r1' },
      onTokens: (tokens) => {
        kept.push(tokens.refreshToken);
      },
    });
    await Promise.all(Array.from({ length: 20 }, () => client.topics.definitions()));
    assert.equal(refreshed, 1);
    assert.deepEqual(kept, ['r2']);
  });

  it('that somebody else has refreshed is taken from where it is kept, and refreshed only if that is old', async () => {
    const used: string[] = [];
    const server = await serverThat((request, response) => {
      if (request.url === '/v1/auth/sign-in/refresh') {
        used.push('refresh');
        response.end('{"result":{"accessToken":"third","refreshToken":"r3","idToken":"i"}}');
      } else if (request.headers.authorization === 'Bearer third') response.end('{"version":3}');
      else if (request.headers.authorization === 'Bearer second' && used.length === 0)
        response.end('{"version":2}');
      else problem(response, 401, 'CREDENTIAL_INVALID');
    });
    const second = { accessToken: 'second', refreshToken: 'r2' };
    const clientWith = () =>
      new Millrace({
        endpoint: server.endpoint,
        organization: 'acme',
        session: { accessToken: 'first', refreshToken: 'r1' },
        latestTokens: async () => second,
      });
    assert.equal((await clientWith().topics.definitions()).version, 2);
    assert.equal(used.length, 0);
    used.push('now the second is old as well');
    assert.equal((await clientWith().topics.definitions()).version, 3);
    assert.equal(used.at(-1), 'refresh');
  });

  it('that has ended fails with what the service said', async () => {
    const server = await serverThat((request, response) => {
      if (request.url === '/v1/auth/sign-in/refresh') response.end('{"errorMsg":"Sign in again."}');
      else problem(response, 401, 'CREDENTIAL_INVALID');
    });
    const session = { accessToken: 'old', refreshToken: 'r1' };
    const client = new Millrace({ endpoint: server.endpoint, organization: 'acme', session });
    await assert.rejects(client.topics.definitions(), { code: 'CREDENTIAL_INVALID', status: 401 });
  });
});
