import assert from 'node:assert/strict';
import { request } from 'node:http';
import { after, before, describe, it } from 'node:test';
import { call } from './harness/client.ts';
import { openConnection } from './harness/connection.ts';
import { bearer, event, json, messageForms, type Sent } from './harness/message-forms.ts';
import { readSamples } from './harness/metrics.ts';
import { join, newApiKey, newOrganization, newPerson, type Person } from './harness/people.ts';
import { type RunningService, startService } from './harness/service.ts';
import { eventually } from './harness/waiting.ts';
import { ask, type Received, written } from './harness/written-request.ts';

/**
 * The busiest operations have short ways through the service, which a request takes when it is written the
 * usual way: one when it comes on a connection that stays and had no others, and one when it had. A slash at
 * the end of the path means the same and is not the usual way, so that each request can be sent every way,
 * and nothing in the answers may tell which one it took.
 */
const counts = 'millrace_http_request_duration_seconds_count';

describe('the short way and the long way', { timeout: 120_000 }, () => {
  let service: RunningService;
  let admin: Person;
  let viewer: Person;
  let organizationName: string;
  let secret: string;
  let restricted: string;
  before(async () => {
    service = await startService({ environment: { MILLRACE_CORS_ORIGINS: 'https://app.example' } });
    [admin, viewer] = [await newPerson(service), await newPerson(service)];
    organizationName = await newOrganization(service, admin);
    await join(service, admin, organizationName, viewer, 'VIEWER');
    const token = admin.accessToken;
    await call(service.url, 'updateTopic', {
      token,
      path: { organizationName, topicName: 'clicks' },
      body: { batch: {}, streams: [{ name: 'clicks' }] },
    });
    await call(service.url, 'updateTopic', {
      token,
      path: { organizationName, topicName: 'raw' },
      body: { streams: [{ name: 'raw' }] },
    });
    secret = (await newApiKey(service, token, organizationName)).secret;
    restricted = (await newApiKey(service, token, organizationName, { queueWhitelist: ['clicks'] })).secret;
  });
  after(() => service.remove());

  const topic = (name: string) => `/v1/organization/${organizationName}/topic/${name}/message`;
  const state = (name: string) => `/v1/organization/${organizationName}/state/${name}`;

  function send(sent: Sent, slash: string): Promise<Received> {
    const { hostname, port } = new URL(service.url);
    const { path, query = '', body = '', chunked = false } = sent;
    const length = chunked
      ? { 'transfer-encoding': 'chunked' }
      : { 'content-length': Buffer.byteLength(body) };
    return new Promise((resolve, reject) => {
      const outgoing = request({
        hostname,
        port,
        method: 'POST',
        path: `${path}${slash}${query}`,
        headers: { ...length, ...sent.headers },
        agent: false,
        signal: AbortSignal.timeout(15_000),
      });
      outgoing.on('error', reject);
      outgoing.on('response', (incoming) => {
        const pieces: Buffer[] = [];
        incoming.on('data', (piece: Buffer) => pieces.push(piece));
        incoming.on('end', () => {
          const text = Buffer.concat(pieces).toString('utf8');
          resolve({ status: incoming.statusCode ?? 0, headers: incoming.rawHeaders, text });
        });
        incoming.on('error', reject);
      });
      outgoing.end(body);
    });
  }

  /** Leaves out what is different from one answer to the next on either way: times, counts and made ids. */
  function comparable({ status, headers, text }: Received): unknown {
    const changing = /^(date|ratelimit|content-length)$/i;
    const made = /[0-9A-Za-z]{10}-[0-9a-z]{1,6}/g;
    const values = headers.map((value, index) =>
      index % 2 === 1 && changing.test(headers[index - 1] ?? '') ? '' : value.replace(made, 'made'),
    );
    const body = text
      .replace(/"messageId":"[0-9A-Za-z]{22}"/, '"messageId":"made"')
      .replace(/"(version|createdAt|updatedAt|value)":[^,}]+/g, '"$1":0')
      .replace(made, 'made');
    return { status, values, body };
  }

  async function compare(what: string, sent: Sent, status: number): Promise<void> {
    const short = await send(sent, '');
    const long = await send(sent, '/');
    assert.equal(short.status, status, `${what}: ${short.text}`);
    assert.deepEqual(comparable(short), comparable(long), what);
    const { host } = new URL(service.url);
    const another = `GET /livez HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
    const shortest = await ask(service.url, written(host, sent));
    const behind = await ask(service.url, written(host, sent), another);
    const around = await ask(service.url, written(host, { ...sent, path: `${sent.path}/` }));
    assert.equal(shortest.status, status, `${what}: ${shortest.text}`);
    assert.deepEqual(comparable(shortest), comparable(behind), what);
    assert.deepEqual(comparable(shortest), comparable(around), what);
    for (const { headers, text } of [short, long, shortest, behind, around]) {
      const length = headers[headers.findIndex((name) => name.toLowerCase() === 'content-length') + 1];
      assert.equal(length, String(Buffer.byteLength(text)), what);
    }
  }

  async function isServed(): Promise<void> {
    const response = await fetch(`${service.url}/livez`, { signal: AbortSignal.timeout(5000) });
    assert.equal(response.status, 200);
    await response.arrayBuffer();
  }

  it('answer messages alike, whatever is said about them', async () => {
    const forms = messageForms({
      path: topic('clicks'),
      streamPath: topic('raw'),
      badPath: topic('a'.repeat(300)),
      strangePath: topic('clicks').replace(organizationName, 'nowhere'),
      secret,
      restricted,
      token: admin.accessToken,
      viewerToken: viewer.accessToken,
    });
    for (const [what, sent, status] of forms) await compare(what, sent, status);
  });

  it('know the same ids of messages', async () => {
    const sent = (id: string): Sent => ({
      path: topic('clicks'),
      query: `?messageKey=k&messageId=${id}`,
      headers: { ...bearer(secret), ...json },
      body: event,
    });
    for (const [id, first, second] of [
      ['one', '', '/'],
      ['two', '/', ''],
      ['%C3%A9%F0%9F%8E%88', '', '/'],
    ] as const) {
      const messageId = decodeURIComponent(id);
      assert.deepEqual(JSON.parse((await send(sent(id), first)).text), { messageId, duplicate: false });
      assert.deepEqual(JSON.parse((await send(sent(id), second)).text), { messageId, duplicate: true });
      await compare(id, sent(id), 200);
    }
  });

  it('answer questions about state alike', async () => {
    const by = { ...bearer(secret), ...json };
    const entry = { keyParts: ['user', 'é'], attributes: { visits: 7 } };
    const of = (name: string, body: unknown, headers: Sent['headers'] = by): Sent => ({
      path: state(name),
      headers,
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
    await compare('upsert', of('upsert', entry), 200);
    await compare('get', of('get', { keyParts: ['user', 'é'] }), 200);
    await compare('get nothing', of('get', { keyParts: ['nobody'] }), 404);
    await compare('list', of('list', { keyPrefix: ['user'] }), 200);
    await compare('list all', of('list', '{}'), 200);
    await compare('no key', of('get', {}), 400);
    await compare('no JSON', of('get', '{'), 400);
    await compare('no object', of('get', '[]'), 400);
    await compare('another type', of('get', '{}', { ...by, 'content-type': 'text/plain' }), 415);
    await compare('zipped', of('get', '{}', { ...by, 'content-encoding': 'gzip' }), 415);
    await compare('a query', { ...of('get', { keyParts: ['user', 'é'] }), query: '?a=1' }, 400);
    await compare('nobody', of('get', { keyParts: ['user'] }, json), 401);
    await compare(
      'a restricted key',
      of('get', { keyParts: ['user'] }, { ...json, ...bearer(restricted) }),
      403,
    );
  });

  it('count requests alike against the limit of the organization and refuse them alike', async () => {
    const small = await newOrganization(service, admin);
    const { secret: key } = await newApiKey(service, admin.accessToken, small);
    await call(service.url, 'rateLimitAdjust', {
      token: admin.accessToken,
      path: { organizationName: small },
      query: { level: 'ONE' },
    });
    const sent: Sent = {
      path: `/v1/organization/${small}/topic/clicks/message`,
      query: '?messageKey=k',
      headers: { ...bearer(key), ...json },
      body: event,
    };
    const left: number[] = [];
    const refused: Received[] = [];
    for (let number = 0; number < 40 && refused.length < 4; number += 1) {
      const answer = await send(sent, number % 2 === 0 ? '' : '/');
      if (answer.status === 429) refused.push(answer);
      const header = answer.headers[answer.headers.indexOf('ratelimit') + 1] ?? '';
      left.push(Number(/r=(\d+)/.exec(header)?.[1]));
    }
    assert.ok(left[0] !== undefined && left[0] >= 8, String(left));
    assert.equal(left.at(-1), 0);
    const [first, ...others] = refused.map(({ status, headers, text }) =>
      comparable({ status, headers, text: text.replace(/\d+ seconds/g, 'seconds') }),
    );
    assert.equal(others.length, 3);
    for (const other of others) assert.deepEqual(other, first);
  });

  it('read bodies that come in pieces, one after the other on a connection', async () => {
    const connection = await openConnection(service.url);
    const head = (slash: string, length: number) =>
      `POST ${topic('clicks')}${slash}?messageKey=k HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n` +
      `Authorization: Bearer ${secret}\r\nContent-Length: ${length}\r\n\r\n`;
    let expected = 0;
    for (const slash of ['', '/', '']) {
      const body = Buffer.from('{"a":"é"}');
      connection.send(head(slash, body.length));
      for (const [from, to] of [
        [0, 4],
        [4, 7],
        [7, 10],
      ]) {
        connection.send(body.subarray(from, to));
        // Meanwhile the service has looked at this piece.
        await isServed();
      }
      expected += 1;
      await connection.answered(expected, 5000);
    }
    connection.send(`${head('', 2)}{}${head('/', 2)}{}${head('', 2)}{}`);
    const answers = await connection.answered(expected + 3, 5000);
    assert.deepEqual(
      answers.map(({ status }) => status),
      Array.from({ length: 6 }, () => 200),
    );
    connection.destroy();
  });

  it('forget alike those who go away in the middle of a body', async () => {
    const sent = {
      path: topic('clicks'),
      query: '?messageKey=k',
      headers: { ...bearer(secret), ...json },
      body: event,
    };
    const counted = async () => {
      const samples = await readSamples(service.url);
      return samples
        .filter(({ name, labels }) => name === counts && labels.operation === 'message')
        .reduce((sum, { value }) => sum + value, 0);
    };
    await send(sent, '');
    for (const slash of ['', '/']) {
      const before = await counted();
      const connection = await openConnection(service.url);
      connection.send(
        `POST ${topic('clicks')}${slash}?messageKey=k HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n` +
          `Authorization: Bearer ${secret}\r\nContent-Length: 100\r\n\r\n{"a":`,
      );
      await isServed();
      connection.destroy();
      await isServed();
      assert.equal((await send(sent, slash)).status, 200);
      await eventually('the count of the answered one', 5000, async () =>
        (await counted()) > before ? true : undefined,
      );
      assert.equal(await counted(), before + 1, slash);
    }
  });
});
