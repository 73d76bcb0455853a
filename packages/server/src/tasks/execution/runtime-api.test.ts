import assert from 'node:assert/strict';
import { request } from 'node:http';
import { connect } from 'node:net';
import { after, before, beforeEach, describe, it } from 'node:test';
import { until } from './execution.fixture.ts';
import { RuntimeApi } from './runtime-api.ts';

interface Answer {
  readonly status: number;
  readonly headers: Record<string, unknown>;
  readonly body: string;
}

describe('the Runtime API', () => {
  const heard: string[] = [];
  let api: RuntimeApi;
  const invocation = {
    requestId: 'r1',
    deadlineMs: 1_800_000_000_000,
    functionArn: 'arn:aws:lambda:local:000000000000:function:t:1',
    event: Buffer.from('{"n":1}'),
  };

  const call = (method: string, path: string, body = '', headers = {}): Promise<Answer> => {
    const url = `http://${api.address}/2018-06-01/runtime${path}`;
    return new Promise((resolve, reject) => {
      const sent = request(url, { method, headers, agent: false }, (answer) => {
        let text = '';
        answer.setEncoding('utf8');
        answer.on('data', (piece) => {
          text += piece;
        });
        answer.on('end', () =>
          resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: text }),
        );
      });
      sent.on('error', reject);
      sent.end(body);
    });
  };
  const typeOf = ({ status, body }: Answer): string => `${status} ${/"errorType":"(\w+)"/.exec(body)?.[1]}`;
  const take = async (): Promise<Answer> => {
    const next = call('GET', '/invocation/next');
    await until('it waits', () => heard.includes('next'));
    assert.equal(api.deliver(invocation), true);
    return next;
  };

  before(async () => {
    api = await RuntimeApi.listen(
      { prefix: 'unguessable' },
      {
        onNext: () => heard.push('next'),
        onAnswer: (payload) => heard.push(`answer ${Buffer.from(payload).toString().slice(0, 50)}`),
        onError: ({ type, message }) => heard.push(`error ${type}: ${message}`),
        onStartError: ({ type, message }) => heard.push(`start ${type}: ${message}`),
      },
    );
  });
  beforeEach(() => heard.splice(0));
  after(() => api.close());

  it('hands over an invocation and takes its answer', async () => {
    const next = await take();
    assert.equal(next.status, 200);
    assert.equal(next.body, '{"n":1}');
    assert.equal(next.headers['lambda-runtime-aws-request-id'], 'r1');
    assert.equal(next.headers['lambda-runtime-deadline-ms'], '1800000000000');
    assert.equal(next.headers['lambda-runtime-invoked-function-arn'], invocation.functionArn);
    const answered = await call('POST', '/invocation/r1/response', '{"fine":true}');
    assert.deepEqual([answered.status, answered.body], [202, '{"status":"OK"}']);
    assert.deepEqual(heard, ['next', 'answer {"fine":true}']);
  });

  it('takes errors in any shape', async () => {
    await take();
    const error = '{"errorType":"Bad","errorMessage":"very","stackTrace":["a","b"]}';
    assert.equal((await call('POST', '/invocation/r1/error', error)).status, 202);
    heard.splice(0, 1);
    await take();
    const header = { 'lambda-runtime-function-error-type': 'Stated.InHeader' };
    await call('POST', '/invocation/r1/error', 'not json', header);
    assert.equal((await call('POST', '/init/error', '[1]')).status, 202);
    assert.deepEqual(heard.slice(0, 3), ['error Bad: very', 'next', 'error Stated.InHeader: not json']);
    assert.equal(heard[3], 'start Runtime.Unknown: [1]');
  });

  it('refuses what comes out of turn', async () => {
    assert.equal(typeOf(await call('POST', '/invocation/r1/response', '1')), '400 InvalidRequestID');
    const waiting = call('GET', '/invocation/next');
    await until('it waits', () => heard.includes('next'));
    assert.equal(typeOf(await call('GET', '/invocation/next')), '403 InvalidStateTransition');
    api.deliver(invocation);
    await waiting;
    assert.equal(typeOf(await call('GET', '/invocation/next')), '403 InvalidStateTransition');
    assert.equal(typeOf(await call('POST', '/invocation/other/response', '1')), '400 InvalidRequestID');
    assert.equal((await call('POST', '/invocation/r1/response', '1')).status, 202);
    assert.equal(typeOf(await call('POST', '/invocation/r1/response', '2')), '400 InvalidRequestID');
    assert.deepEqual(heard, ['next', 'answer 1']);
  });

  it('refuses unknown paths and methods, and every path without its token', async () => {
    assert.equal(typeOf(await call('GET', '/nothing')), '404 NotFound');
    assert.equal(typeOf(await call('POST', '/invocation/next')), '405 MethodNotAllowed');
    assert.equal(typeOf(await call('GET', '/init/error')), '405 MethodNotAllowed');
    const [host] = api.address.split('/');
    for (const path of [
      '/2018-06-01/runtime/invocation/next',
      '/guess/2018-06-01/runtime/invocation/next',
      '/',
    ]) {
      assert.equal((await fetch(`http://${host}${path}`)).status, 404);
    }
  });

  it('turns an answer over the limit into an error', async () => {
    await take();
    const answer = await call('POST', '/invocation/r1/response', 'x'.repeat(6 * 1024 * 1024 + 1));
    assert.equal(typeOf(answer), '413 RequestEntityTooLarge');
    assert.match(heard[1] ?? '', /^error Function\.ResponseSizeTooLarge: /);
    heard.splice(0);
    await take();
    await call('POST', '/invocation/r1/response', 'x'.repeat(40 * 1024 * 1024)).catch(() => undefined);
    assert.match(heard[1] ?? '', /^error Function\.ResponseSizeTooLarge: /);
  });

  it('outlives connections that break off and bytes that are no HTTP', async () => {
    const [port] = /\d+(?=\/)/.exec(api.address) ?? [];
    for (const bytes of [
      '\0\0\0',
      'GET',
      'POST /unguessable/2018-06-01/runtime/init/error HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\nhalf',
    ]) {
      const socket = connect(Number(port), '127.0.0.1');
      socket.on('error', () => {});
      socket.write(bytes, () => socket.destroy());
      await new Promise((resolve) => socket.once('close', resolve));
    }
    const waiting = request(`http://${api.address}/2018-06-01/runtime/invocation/next`, { agent: false });
    waiting.on('error', () => {});
    waiting.end();
    await until('it waits', () => heard.includes('next'));
    waiting.destroy();
    // A call that comes after it is answered after it was seen to be gone.
    await call('GET', '/nothing');
    assert.equal(api.deliver(invocation), false);
    heard.splice(0);
    assert.equal((await take()).status, 200);
    await call('POST', '/invocation/r1/response', 'null');
    assert.deepEqual(heard, ['next', 'answer null']);
  });
});
