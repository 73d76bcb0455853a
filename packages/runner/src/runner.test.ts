import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { endpointHandler, log, publish, publishMany, state, streamHandler } from './index.ts';
import { testKit } from './testing.ts';

describe('a handler of a stream', () => {
  it('gets messages one at a time with what is known about them', async () => {
    using kit = testKit();
    const seen: unknown[] = [];
    const handler = streamHandler<{ n: number }>((message) => {
      seen.push([message.key, message.id, message.body.n, message.attempt, message.stream]);
    });
    const { failed } = await kit.stream(handler, [
      { key: 'a', body: { n: 1 } },
      { key: 'b', body: { n: 2 }, id: 'x', attempt: 3 },
    ]);
    assert.deepEqual(failed, []);
    assert.deepEqual(seen, [
      ['a', 'message-1', 1, 1, 'stream'],
      ['b', 'x', 2, 3, 'stream'],
    ]);
  });

  it('reports what failed and what comes after it of the same key, and nothing else', async () => {
    using kit = testKit();
    const handled: number[] = [];
    const handler = streamHandler<{ n: number }>(async ({ body }) => {
      if (body.n === 2) throw new Error('no');
      handled.push(body.n);
    });
    const { failed } = await kit.stream(handler, [
      { key: 'a', body: { n: 1 } },
      { key: 'a', body: { n: 2 } },
      { key: 'b', body: { n: 3 } },
      { key: 'a', body: { n: 4 } },
      { key: 'b', body: 'no JSON' },
    ]);
    assert.deepEqual(failed.toSorted(), ['message-2', 'message-4', 'message-5']);
    assert.deepEqual(handled.toSorted(), [1, 3]);
  });

  it('publishes and counts without a server', async () => {
    using kit = testKit();
    const handler = streamHandler<{ page: string }>(async ({ body, key, id }) => {
      await state.increment(['page', body.page], 'views');
      await publish('enriched', { ...body, seen: true }, { key, id });
    });
    const messages = [{ key: 'u', body: { page: '/' }, id: 'm1' }];
    await kit.stream(handler, messages);
    await kit.stream(handler, messages);
    assert.deepEqual(kit.published, [
      { topic: 'enriched', message: { page: '/', seen: true }, key: 'u', id: 'm1' },
    ]);
    assert.equal(kit.entries.get('page:/')?.attributes.views, 2);
  });
});

describe('publishing many messages', () => {
  it('takes key and id from each message, and nothing twice', async () => {
    using kit = testKit();
    const messages = [
      { id: 'p1', user: { name: 'ada' } },
      { id: 'p2', user: { name: 'bo' } },
    ];
    const options = { keyPath: '/user/name', idPath: '/id' };
    assert.deepEqual(await publishMany('sold', messages, options), { accepted: 2, duplicates: 0 });
    assert.deepEqual(await publishMany('sold', messages, options), { accepted: 0, duplicates: 2 });
    assert.deepEqual(await publishMany('sold', [], options), { accepted: 0, duplicates: 0 });
    assert.deepEqual(
      kit.published.map(({ key, id }) => [key, id]),
      [
        ['ada', 'p1'],
        ['bo', 'p2'],
      ],
    );
    await assert.rejects(publishMany('sold', [{ id: 'p3' }], options), { code: 'VALIDATION_FAILED' });
  });
});

describe('state', () => {
  it('is updated on top of what somebody else wrote in between', async () => {
    using kit = testKit();
    let interfered = false;
    await Promise.all(
      Array.from({ length: 5 }, () =>
        state.update(['n'], (attributes) => {
          interfered ||= attributes.n !== undefined;
          return { n: Number(attributes.n ?? 0) + 1 };
        }),
      ),
    );
    assert.equal(kit.entries.get('n')?.attributes.n, 5);
    assert.ok(interfered);
  });
});

describe('a handler of an endpoint', () => {
  it('gets a request and answers a response', async () => {
    using kit = testKit();
    const handler = endpointHandler(async (request) => {
      const { pathname, searchParams } = new URL(request.url);
      const sent = request.method === 'POST' ? await request.json() : null;
      return Response.json(
        { pathname, name: searchParams.get('name'), sent },
        { status: 201, headers: { 'set-cookie': 'a=1' } },
      );
    });
    const answer = await kit.endpoint(handler, '/hello?name=ada', {
      method: 'POST',
      body: '{"x":1}',
      headers: { 'content-type': 'application/json' },
    });
    assert.equal(answer.statusCode, 201);
    assert.deepEqual(answer.cookies, ['a=1']);
    assert.deepEqual(JSON.parse(answer.body ?? ''), { pathname: '/hello', name: 'ada', sent: { x: 1 } });
  });

  it('carries bytes both ways', async () => {
    using kit = testKit();
    const bytes = Uint8Array.from({ length: 70_000 }, (_value, index) => index % 256);
    const handler = endpointHandler(() => new Response(bytes, { headers: { 'content-type': 'image/png' } }));
    const answer = await kit.endpoint(handler, '/');
    assert.equal(answer.isBase64Encoded, true);
    assert.deepEqual(new Uint8Array(Buffer.from(answer.body ?? '', 'base64')), bytes);
  });
});

describe('logging', () => {
  it('prints a line whatever the fields are', (context) => {
    const printed: string[] = [];
    context.mock.method(console, 'log', (line: string) => printed.push(line));
    const circle: Record<string, unknown> = {};
    circle.self = circle;
    log.info('counted', { n: 1n, level: 'mine', text: 'mine', error: new Error('no') });
    log.info('circle', { circle });
    const [first, second] = printed.map((line) => JSON.parse(line));
    assert.deepEqual([first.level, first.text, first.n], ['info', 'counted', '1']);
    assert.match(first.error, /Error: no/);
    assert.equal(second.text, 'circle');
  });
});
