import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { checkProblem } from './harness/client.ts';
import { type Connection, openConnection } from './harness/connection.ts';
import { figure, openFiles } from './harness/metrics.ts';
import { newPerson, type Person, password } from './harness/people.ts';
import { type RunningService, startService } from './harness/service.ts';
import { eventually, median } from './harness/waiting.ts';

/** The longest that a client may hold a connection with these settings, and a margin for a busy machine. */
const boundMilliseconds = 8000;

describe('clients that are slow, silent or gone', () => {
  let service: RunningService;
  let person: Person;
  let baseline: number;
  before(async () => {
    service = await startService({
      environment: {
        MILLRACE_HEADERS_TIMEOUT_SECONDS: '1',
        MILLRACE_REQUEST_TIMEOUT_SECONDS: '2',
        MILLRACE_KEEP_ALIVE_SECONDS: '1',
        MILLRACE_IDLE_TIMEOUT_SECONDS: '2',
      },
    });
    person = await newPerson(service);
    baseline = await openFiles(service.url);
  });
  after(() => service.remove());

  /** Holds that a connection ends in time, with 408 as its only answer if there is one. */
  async function isCutOff(connection: Connection, what: string): Promise<void> {
    const started = performance.now();
    await connection.closed(boundMilliseconds);
    const { answers, incomplete } = connection.received();
    assert.equal(incomplete, false, what);
    assert.ok(answers.length <= 1, what);
    for (const answer of answers) {
      assert.equal(answer.status, 408, `${what}: ${answer.text}`);
      checkProblem(answer);
    }
    assert.ok(performance.now() - started < boundMilliseconds, what);
  }

  /** Sends one byte after the other for as long as the server listens. */
  function trickle(connection: Connection, text: string, everyMilliseconds: number): () => void {
    let at = 0;
    const timer = setInterval(() => {
      connection.send(text[at % text.length] ?? 'a');
      at += 1;
    }, everyMilliseconds);
    return () => clearInterval(timer);
  }

  async function isServed(): Promise<void> {
    const response = await fetch(`${service.url}/v1/health`, { signal: AbortSignal.timeout(3000) });
    assert.equal(response.status, 200);
    await response.arrayBuffer();
  }

  describe('are cut off in time', { concurrency: true }, () => {
    it('one that connects and says nothing', async () => {
      await isCutOff(await openConnection(service.url), 'silence');
    });

    it('one that sends its headers a byte at a time', async () => {
      const connection = await openConnection(service.url);
      const stop = trickle(connection, `GET /v1/health HTTP/1.1\r\nHost: a\r\nX: ${'a'.repeat(5000)}`, 40);
      try {
        await isCutOff(connection, 'slow headers');
      } finally {
        stop();
      }
    });

    it('one that never stops sending headers', async () => {
      const connection = await openConnection(service.url);
      connection.send('GET /v1/health HTTP/1.1\r\nHost: a\r\n');
      const stop = trickle(connection, 'X: a\r\n', 40);
      try {
        await isCutOff(connection, 'endless headers');
      } finally {
        stop();
      }
    });

    it('one that sends headers and then no body', async () => {
      const connection = await openConnection(service.url);
      connection.send(
        'POST /v1/auth/sign-in HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n',
      );
      await isCutOff(connection, 'no body');
    });

    it('one that sends its body a byte at a time', async () => {
      for (const framing of [
        'Content-Length: 100000\r\n\r\n',
        'Transfer-Encoding: chunked\r\n\r\n186a0\r\n',
      ]) {
        const connection = await openConnection(service.url);
        connection.send(
          `POST /v1/auth/sign-in HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n${framing}`,
        );
        const stop = trickle(connection, 'a', 40);
        try {
          await isCutOff(connection, 'slow body');
        } finally {
          stop();
        }
      }
    });

    it('one that sends a body without end', async () => {
      const head = 'POST /v1/auth/sign-in HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n';
      const piece = 'x'.repeat(65_536);
      const endless: [string, string][] = [
        [`${head}Transfer-Encoding: chunked\r\n\r\n`, `10000\r\n${piece}\r\n`],
        [`${head}Content-Length: 9000000000\r\n\r\n`, piece],
        [`POST /nowhere HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n`, `10000\r\n${piece}\r\n`],
      ];
      for (const [beginning, more] of endless) {
        const connection = await openConnection(service.url);
        connection.send(beginning);
        const pour = () => {
          while (connection.socket.writable && connection.socket.write(more));
        };
        connection.socket.on('drain', pour);
        pour();
        await connection.closed(boundMilliseconds);
        for (const answer of connection.received().answers) assert.ok(answer.status >= 400);
      }
    });

    it('one whose request was refused before its body, and who never sends it', async () => {
      const connection = await openConnection(service.url);
      connection.send('POST /v1/auth/totp HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n');
      await connection.closed(boundMilliseconds);
      assert.equal(connection.received().answers[0]?.status, 401);
    });

    it('one that has been answered and keeps the connection', async () => {
      const connection = await openConnection(service.url);
      connection.send('GET /v1/health HTTP/1.1\r\nHost: a\r\n\r\n');
      await connection.closed(boundMilliseconds);
      assert.equal(connection.received().answers.length, 1);
    });

    it('one that asks for much and never reads', async () => {
      const before = (await figure(service.url, 'process_resident_memory_bytes')) ?? 0;
      const request = 'GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n';
      const connections = await Promise.all(
        Array.from({ length: 20 }, () => openConnection(service.url, { deaf: true })),
      );
      for (const connection of connections) connection.send(request.repeat(200));
      // A deaf client cannot see that it was cut off; the server's own count tells.
      await eventually('the deaf clients are gone', boundMilliseconds, async () => {
        const alive = await Promise.all(connections.map((connection) => isAlive(connection)));
        return alive.some(Boolean) ? undefined : true;
      });
      const grown = ((await figure(service.url, 'process_resident_memory_bytes')) ?? 0) - before;
      assert.ok(grown < 200 * 1024 * 1024, `memory grew by ${Math.round(grown / 1024 / 1024)} MiB`);
    });
  });

  /** Writing to a connection that the other side has reset fails, and closes it on this side. */
  async function isAlive(connection: Connection): Promise<boolean> {
    connection.send('GET /v1/health HTTP/1.1\r\nHost: a\r\n\r\n');
    return !connection.isClosed();
  }

  it('serves others while 500 connections are idle and 50 are slow', async (test) => {
    const idle = await Promise.all(Array.from({ length: 500 }, () => openConnection(service.url)));
    const slow = await Promise.all(Array.from({ length: 50 }, () => openConnection(service.url)));
    const stops = slow.map((connection) => trickle(connection, 'GET /v1/health HTTP/1.1\r\n', 100));
    const times: number[] = [];
    try {
      await eventually('the idle connections are gone', boundMilliseconds, async () => {
        const started = performance.now();
        await isServed();
        times.push(performance.now() - started);
        return [...idle, ...slow].every((connection) => connection.isClosed()) ? true : undefined;
      });
    } finally {
      for (const stop of stops) stop();
      for (const connection of [...idle, ...slow]) connection.destroy();
    }
    test.diagnostic(`${times.length} requests meanwhile, median ${median(times).toFixed(1)} ms`);
    assert.ok(times.length > 20);
    assert.ok(median(times) < 250, `the median of a request was ${median(times)} ms`);
  });

  it('takes a reset in the middle of anything', async () => {
    const body = JSON.stringify({ usernameOrEmail: person.username, password });
    const head = `POST /v1/auth/sign-in HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n`;
    const beginnings = [
      '',
      'GET /v1/hea',
      'GET /v1/health HTTP/1.1\r\nHost',
      `${head}Content-Length: ${body.length}\r\n\r\n${body.slice(0, 10)}`,
      `${head}Transfer-Encoding: chunked\r\n\r\nff\r\n{"user`,
      // Whole requests, whose sender is gone before the answer.
      `${head}Content-Length: ${body.length}\r\n\r\n${body}`,
      'GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n',
    ];
    for (let round = 0; round < 10; round += 1) {
      for (const bytes of beginnings) {
        const connection = await openConnection(service.url);
        connection.socket.write(bytes, () => connection.socket.resetAndDestroy());
        if (bytes === '') connection.socket.resetAndDestroy();
      }
    }
    await isServed();
  });

  it('takes clients that close their half and still want the answer', async () => {
    const connection = await openConnection(service.url);
    connection.socket.end('GET /v1/health HTTP/1.1\r\nHost: a\r\n\r\n');
    await connection.closed(boundMilliseconds);
    assert.equal(connection.received().answers[0]?.status, 200);
  });

  it('keeps nothing of them afterwards', async () => {
    const open = await eventually('sockets return to where they were', boundMilliseconds, async () => {
      const now = await openFiles(service.url);
      return now <= baseline + 5 ? now : undefined;
    });
    assert.ok(open > 0);
    await isServed();
    assert.equal(service.process.exitCode, null, 'the process is the same one');
    assert.deepEqual(faults(service.output().stderr), [], 'a client that goes away is no fault of ours');
  });
});

/** What was logged as an error, each message once. */
function faults(log: string): string[] {
  const messages = log
    .split('\n')
    .filter((line) => line.includes('"level":"error"'))
    .map((line) => {
      const { event, error } = JSON.parse(line);
      return `${event}: ${error?.message}`;
    });
  return [...new Set(messages)];
}
