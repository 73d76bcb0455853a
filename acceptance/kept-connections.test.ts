import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { checkProblem } from './harness/client.ts';
import { type Connection, openConnection } from './harness/connection.ts';
import { bearer, event, json } from './harness/message-forms.ts';
import { figure } from './harness/metrics.ts';
import { newApiKey, newOrganization, newPerson } from './harness/people.ts';
import { type RunningService, startService } from './harness/service.ts';
import { eventually } from './harness/waiting.ts';
import { written } from './harness/written-request.ts';

/** The longest that a client may hold a connection with these settings, and a margin for a busy machine. */
const boundMilliseconds = 8000;
const health = 'GET /v1/health HTTP/1.1\r\nHost: a\r\n\r\n';

describe('connections on which messages come one after the other', { timeout: 120_000 }, () => {
  let service: RunningService;
  let path: string;
  let secret: string;
  before(async () => {
    service = await startService({
      environment: {
        MILLRACE_RATE_LIMIT_DEFAULT: '1000000',
        MILLRACE_HEADERS_TIMEOUT_SECONDS: '1',
        MILLRACE_REQUEST_TIMEOUT_SECONDS: '2',
        MILLRACE_KEEP_ALIVE_SECONDS: '1',
        MILLRACE_IDLE_TIMEOUT_SECONDS: '2',
      },
    });
    const person = await newPerson(service);
    const organizationName = await newOrganization(service, person);
    secret = (await newApiKey(service, person.accessToken, organizationName)).secret;
    path = `/v1/organization/${organizationName}/topic/clicks/message`;
  });
  after(() => service.remove());

  const message = (id: string, body = event) =>
    written('a', {
      path,
      query: `?messageKey=k&messageId=${id}`,
      headers: { ...bearer(secret), ...json },
      body,
    });

  const idsOf = async (connection: Connection, count: number) =>
    (await connection.answered(count, 5000)).map(({ status, text }) =>
      status === 200 ? JSON.parse(text).messageId : status,
    );

  it('carry as many as are sent, and anything else between them', async () => {
    const connection = await openConnection(service.url);
    const expected: unknown[] = [];
    for (let round = 0; round < 3; round += 1) {
      for (let number = 0; number < 5; number += 1) {
        connection.send(message(`a-${round}-${number}`));
        expected.push(`a-${round}-${number}`);
        assert.deepEqual(await idsOf(connection, expected.length), expected);
      }
      if (round === 1) {
        connection.send(health);
        expected.push(undefined);
        assert.deepEqual(await idsOf(connection, expected.length), expected);
      }
    }
    connection.destroy();
  });

  it('carry messages that do not wait for answers, in order', async () => {
    for (const pieces of [
      [Buffer.concat(['b-0', 'b-1', 'b-2'].map((id) => message(id)))],
      ['b-3', 'b-4', 'b-5'].map((id) => message(id)),
      [message('b-6'), Buffer.concat([message('b-7'), Buffer.from(health), message('b-8')])],
    ]) {
      const connection = await openConnection(service.url);
      for (const piece of pieces) connection.send(piece);
      const wanted = Buffer.concat(pieces)
        .toString()
        .match(/b-\d|health/g);
      const ids = wanted?.map((id) => (id === 'health' ? undefined : id));
      assert.deepEqual(await idsOf(connection, ids?.length ?? 0), ids);
      connection.destroy();
    }
  });

  it('carry messages that come in pieces, wherever they are cut', async () => {
    const whole = message('c');
    for (const at of [1, 5, 30, whole.indexOf('\r\n') + 1, whole.indexOf('\r\n\r\n') + 3, whole.length - 1]) {
      const connection = await openConnection(service.url);
      connection.send(message('c'));
      await connection.answered(1, 5000);
      connection.send(whole.subarray(0, at));
      await fetch(`${service.url}/livez`).then((response) => response.arrayBuffer());
      connection.send(whole.subarray(at));
      assert.deepEqual(await idsOf(connection, 2), ['c', 'c'], `cut at ${at}`);
      connection.destroy();
    }
  });

  it('answer one that closes its half, and end it', async () => {
    for (const ids of [['d-0'], ['d-1', 'd-2', 'd-3']]) {
      const connection = await openConnection(service.url);
      connection.socket.end(Buffer.concat(ids.map((id) => message(id))));
      await connection.closed(boundMilliseconds);
      assert.deepEqual(await idsOf(connection, ids.length), ids);
    }
  });

  it('end one that closes its half in the middle, as any other', async () => {
    for (const before of ['', health]) {
      const connection = await openConnection(service.url);
      connection.send(before);
      connection.socket.end(message('e').subarray(0, -3));
      await connection.closed(boundMilliseconds);
      const statuses = connection.received().answers.map(({ status }) => status);
      assert.deepEqual(statuses, before === '' ? [400] : [200, 400]);
    }
  });

  it('are cut off when the rest of a message does not come', async () => {
    for (const before of [undefined, message('f')]) {
      const connection = await openConnection(service.url);
      if (before !== undefined) {
        connection.send(before);
        await connection.answered(1, 5000);
      }
      connection.send(message('f').subarray(0, -3));
      await connection.closed(boundMilliseconds);
      const late = connection.received().answers[before === undefined ? 0 : 1];
      if (late !== undefined) {
        assert.equal(late.status, 408);
        checkProblem(late);
      }
    }
  });

  it('are cut off when the rest of a message comes byte after byte', async () => {
    const body = JSON.stringify({ text: 'x'.repeat(10_000) });
    for (const before of [[], [message('f-1')]]) {
      const connection = await openConnection(service.url);
      for (const bytes of before) connection.send(bytes);
      await connection.answered(before.length, 5000);
      connection.send(message('f-2', body).subarray(0, -body.length));
      await eventually('the end of the connection', boundMilliseconds, () => {
        connection.send('{');
        return connection.isClosed() ? true : undefined;
      });
      assert.ok(connection.received().answers.every(({ status }) => status === 200 || status === 408));
    }
  });

  it('are ended when no more messages come, and not before the time that was told', async () => {
    const connection = await openConnection(service.url);
    connection.send(message('g'));
    const [answer] = await connection.answered(1, 5000);
    assert.equal(answer?.headers.get('keep-alive'), 'timeout=1');
    const started = performance.now();
    await connection.closed(boundMilliseconds);
    const took = performance.now() - started;
    // As Node does, they are kept for a second longer, for a request that is on its way by then.
    assert.ok(took > 1900, `it was ended after ${took} ms`);
    assert.equal(connection.received().answers.length, 1);
  });

  it('are not cut off while a client reads a long answer slowly', async () => {
    const by = { ...bearer(secret), ...json };
    const state = path.replace(/topic.*/, 'state/');
    const text = 'x'.repeat(250_000);
    const kept = await openConnection(service.url);
    const count = 16;
    for (let number = 0; number < count; number += 1) {
      const body = JSON.stringify({ keyParts: ['slow', String(number)], attributes: { text } });
      kept.send(written('a', { path: `${state}upsert`, headers: by, body }));
      assert.equal((await kept.answered(number + 1, 5000))[number]?.status, 200);
    }
    kept.destroy();
    const slow = await openConnection(service.url, { deaf: true });
    const { socket } = slow;
    const question = written('a', { path: `${state}list`, headers: by, body: '{"keyPrefix":["slow"]}' });
    // Two answers are more than the machine keeps between the two.
    slow.send(Buffer.concat([question, question]));
    // At first for longer than a client may be silent here, and never silent for that long.
    const slowUntil = performance.now() + 4000;
    let read = 0;
    await eventually('the rest of the answer', 20_000, () => {
      const most = performance.now() < slowUntil ? 16 * 1024 : 1024 * 1024;
      const piece: Buffer | null = socket.read(Math.min(socket.readableLength, most));
      read += piece?.length ?? 0;
      assert.ok(!slow.isClosed(), `the connection was ended after ${read} bytes`);
      return read > 2 * count * text.length ? true : undefined;
    });
    slow.destroy();
  });

  it('keep little for those who never read', async () => {
    const by = { ...bearer(secret), ...json };
    const state = path.replace(/topic.*/, 'state/');
    const large = JSON.stringify({ keyParts: ['large'], attributes: { text: 'x'.repeat(200_000) } });
    const kept = await openConnection(service.url);
    kept.send(written('a', { path: `${state}upsert`, headers: by, body: large }));
    assert.equal((await kept.answered(1, 5000))[0]?.status, 200);
    kept.destroy();
    const before = (await figure(service.url, 'process_resident_memory_bytes')) ?? 0;
    const connections = await Promise.all(
      Array.from({ length: 20 }, () => openConnection(service.url, { deaf: true })),
    );
    const question = written('a', { path: `${state}get`, headers: by, body: '{"keyParts":["large"]}' });
    await eventually('the deaf clients are gone', boundMilliseconds, () => {
      const open = connections.filter((connection) => !connection.isClosed());
      for (const connection of open) connection.send(question);
      return open.length === 0 ? true : undefined;
    });
    const grown = ((await figure(service.url, 'process_resident_memory_bytes')) ?? 0) - before;
    assert.ok(grown < 150 * 1024 * 1024, `memory grew by ${Math.round(grown / 1024 / 1024)} MiB`);
  });

  it('read every head as others do, however it is written', async () => {
    const usual = message('i').toString('latin1');
    const changed: [string, string][] = [
      ['\r\nHost: a', '\r\nHost : a'],
      ['\r\nHost: a', '\nHost: a'],
      ['\r\nHost: a', '\rXHost: a'],
      ['\r\nHost: a', '\r\rHost: a'],
      ['\r\nHost: a', '\r\nHost: a\r\n b'],
      ['\r\nHost: a', '\r\nHost: a\r\nX: \0'],
      ['\r\nHost: a', '\r\nHost: a\r\nX: \x7f'],
      ['\r\nHost: a', '\r\nHost: a\r\nX: é'],
      ['\r\nHost: a', '\r\nHost: a\r\nX:'],
      ['\r\nHost: a', '\r\nHost: a\r\nX(): y'],
      ['\r\nHost: a', '\r\nHost: a\r\nContent-Length: 3'],
      ['\r\nHost: a', '\r\nHost: a\r\nTransfer-Encoding: chunked'],
      ['\r\nHost: a', '\r\nHost: a\r\nTransfer-Encoding: identity'],
      ['\r\nHost: a', '\r\nHost: a\r\nConnection: close'],
      ['\r\nHost: a', '\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket'],
      ['\r\nHost: a', '\r\nHost: a\r\nAuthorization: Bearer mr_other'],
      ['\r\nHost: a', ''],
      ['Content-Length: ', 'Content-Length: +'],
      ['Content-Length: ', 'Content-Length: 0'],
      ['Content-Length: ', 'Content-Length: 0x'],
      ['Content-Length: ', 'Content-Length: -'],
      ['Content-Length: ', 'Content-length:\t '],
      ['Content-Length: ', 'Content-Length: 9999999999'],
      [' HTTP/1.1', ' HTTP/1.0'],
      [' HTTP/1.1', ' HTTP/1.2'],
      [' HTTP/1.1', '  HTTP/1.1'],
      [' HTTP/1.1', ''],
      ['POST /v1', 'POST http://a/v1'],
      ['POST /v1', 'POST //v1'],
      ['POST /v1', 'POST /./v1'],
      ['POST /v1', 'PosT /v1'],
      ['POST /v1', '\r\nPOST /v1'],
      ['/clicks/', '/cl%69cks/'],
      ['/clicks/', '/../clicks/'],
      ['messageKey=k', 'messageKey=k#x'],
      ['messageKey=k', 'messageKey=k;x=1'],
      ['messageKey=k', '__proto__=k'],
    ];
    for (const [from, to] of changed) {
      const bytes = Buffer.from(usual.replace(from, to), 'latin1');
      const statuses = await Promise.all(
        ['', health].map(async (before) => {
          const connection = await openConnection(service.url);
          connection.send(before);
          const count = before === '' ? 1 : 2;
          await connection.answered(count - 1, boundMilliseconds);
          connection.send(bytes);
          const answers = await connection.answered(count, boundMilliseconds);
          connection.destroy();
          return answers.slice(count - 1).map(({ status, body }) => [status, body.code]);
        }),
      );
      assert.deepEqual(statuses[0], statuses[1], JSON.stringify(to));
    }
  });

  it('do not keep the service from stopping', async () => {
    const connections = await Promise.all(Array.from({ length: 5 }, () => openConnection(service.url)));
    for (const [index, connection] of connections.entries()) {
      connection.send(message(`j-${index}`));
      await connection.answered(1, 5000);
    }
    const started = performance.now();
    assert.equal(await service.stop(), 0);
    const took = performance.now() - started;
    assert.ok(took < 3000, `it took ${took} ms`);
    for (const connection of connections) await connection.closed(1000);
  });
});
