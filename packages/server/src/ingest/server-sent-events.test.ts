import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { Readable } from 'node:stream';
import { after, before, describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { entry, type LogSite, neighbours, openLog, topic } from './log.fixture.ts';
import { serverSentEvents } from './server-sent-events.ts';

describe('server-sent events of a topic', { timeout: 60_000 }, () => {
  let site: LogSite;
  before(async () => {
    site = await openLog();
  });
  after(() => site.close());

  const stopping = new AbortController();
  const open = (more: { quietMilliseconds?: number; bufferMessages?: number } = {}) =>
    serverSentEvents(site.log, { topic, signal: stopping.signal, ...more })[Symbol.asyncIterator]();

  async function untilNobodyListens(): Promise<void> {
    const end = performance.now() + 5000;
    while (site.listeners() > 0) {
      assert.ok(performance.now() < end, `${site.listeners()} listen still`);
      await pause(5);
    }
  }

  it('begin with a comment once nothing can be missed, and fill silence with comments', async () => {
    const events = open({ quietMilliseconds: 5 });
    const first = await events.next();
    assert.match(first.value ?? '', /^: .+\n\n$/);
    assert.equal(site.listeners(), 1);
    assert.match((await events.next()).value ?? '', /^: .+\n\n$/);
    await events.return?.();
    await untilNobodyListens();
  });

  it('are one line of data for each message', async () => {
    const events = open();
    await events.next();
    await site.log.append([
      entry('a "key"', 'the\nid', { body: Buffer.from('{\r\n"n": 12345678901234567890}') }),
    ]);
    assert.equal(
      (await events.next()).value,
      'data: {"messageKey":"a \\"key\\"","messageId":"the\\nid","acceptedAt":"2026-11-15T09:30:00.000Z",' +
        '"body":{ "n": 12345678901234567890}}\n\n',
    );
    await events.return?.();
  });

  it('say how many messages were dropped', async () => {
    const events = open({ bufferMessages: 2 });
    await events.next();
    const [key = ''] = neighbours(1);
    await site.log.append(['1', '2', '3'].map((id) => entry(key, id)));
    assert.equal((await events.next()).value, 'event: dropped\ndata: {"messages":3}\n\n');
    await events.return?.();
  });

  it('cost nothing any more as soon as the reader is gone', async () => {
    const readers = Array.from({ length: 200 }, () =>
      Readable.from(serverSentEvents(site.log, { topic, signal: stopping.signal })),
    );
    await Promise.all(readers.map((reader) => new Promise((resolve) => reader.once('data', resolve))));
    assert.equal(site.listeners(), readers.length);
    for (const reader of readers) reader.destroy();
    await untilNobodyListens();
    assert.equal(getEventListeners(stopping.signal, 'abort').length, 0);
  });

  it('end when the service stops', async () => {
    const reader = Readable.from(serverSentEvents(site.log, { topic, signal: stopping.signal }));
    const ended = new Promise((resolve) => reader.once('end', resolve));
    await new Promise((resolve) => reader.once('data', resolve));
    stopping.abort();
    await ended;
    assert.equal(site.listeners(), 0);
  });
});
