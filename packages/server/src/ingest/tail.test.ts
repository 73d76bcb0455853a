import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { after, before, describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { partitionOf } from '../events/partition.ts';
import { entry, type LogSite, neighbours, openLog, topic } from './log.fixture.ts';
import { type TailEvent, type TailOptions, tail } from './tail.ts';

const limit = 10_000;

describe('following a topic', { concurrency: true, timeout: 60_000 }, () => {
  let site: LogSite;
  before(async () => {
    site = await openLog();
  });
  after(() => site.close());

  /** Follows a topic of its own, and has begun to when this resolves. */
  async function follow(topicName: string, options: Partial<TailOptions> = {}) {
    const ending = new AbortController();
    const own = { ...topic, topicName };
    const events = tail(site.log, { topic: own, signal: ending.signal, ...options });
    assert.deepEqual(await next(events), { kind: 'following' });
    return {
      events,
      end: () => ending.abort(),
      signal: ending.signal,
      append: (key: string, ...ids: string[]) =>
        site.log.append(ids.map((id) => entry(key, id, { topicName }))),
      /** The ids of the next messages. */
      ids: async (count: number) => {
        const ids: string[] = [];
        while (ids.length < count) {
          const event = await next(events);
          assert.equal(event?.kind, 'message');
          if (event?.kind === 'message') ids.push(event.record.id);
        }
        return ids;
      },
    };
  }

  async function next(events: AsyncGenerator<TailEvent>): Promise<TailEvent | undefined> {
    const over = new AbortController();
    const late = pause(limit, undefined, { signal: over.signal }).then(() => {
      throw new Error('no event in time');
    });
    late.catch(() => undefined);
    try {
      const { value, done } = await Promise.race([events.next(), late]);
      return done ? undefined : value;
    } finally {
      over.abort();
    }
  }

  const numbered = (count: number, from = 0) => Array.from({ length: count }, (_value, n) => `m${from + n}`);

  it('tells what comes after, and nothing of before', async () => {
    await site.log.append([entry('a', 'old', { topicName: 'after' })]);
    const follower = await follow('after');
    await follower.append('a', 'new');
    await follower.append('b', 'newer');
    assert.deepEqual(await follower.ids(2), ['new', 'newer']);
    follower.end();
    assert.equal(await next(follower.events), undefined);
  });

  it('loses nothing that is accepted once it has begun', async () => {
    for (let round = 0; round < 50; round += 1) {
      const topicName = `begun-${round}`;
      const follower = await follow(topicName);
      await follower.append('a', `first-${round}`);
      assert.deepEqual(await follower.ids(1), [`first-${round}`]);
      follower.end();
      await follower.events.return(undefined);
    }
  });

  it('tells nothing of other topics and organizations', async () => {
    const follower = await follow('own');
    await site.log.append([
      entry('a', 'other topic', { topicName: 'Own' }),
      entry('a', 'other organization', { organizationId: 'other', topicName: 'own' }),
    ]);
    await follower.append('a', 'mine');
    assert.deepEqual(await follower.ids(1), ['mine']);
    follower.end();
  });

  it('keeps the order of each key over many pages', async () => {
    const follower = await follow('ordered');
    const [one = '', other = ''] = neighbours(2);
    await Promise.all([
      follower.append(one, ...numbered(700)),
      follower.append(other, ...numbered(700, 1000)),
      follower.append('elsewhere', ...numbered(300, 5000)),
    ]);
    const ids = await follower.ids(1700);
    const within = (from: number, to: number) =>
      ids.map((id) => Number(id.slice(1))).filter((n) => n >= from && n < to);
    for (const [from, count] of [
      [0, 700],
      [1000, 700],
      [5000, 300],
    ] as const) {
      const numbers = within(from, from + count);
      assert.deepEqual(
        numbers,
        Array.from({ length: count }, (_value, n) => from + n),
      );
    }
    follower.end();
  });

  it('tells one key only when asked to, also among its neighbours', async () => {
    const [mine = '', neighbour = ''] = neighbours(2);
    const follower = await follow('filtered', { messageKey: mine });
    await follower.append(neighbour, 'a', 'b');
    await follower.append(mine, 'c');
    await follower.append('elsewhere', 'd');
    await follower.append(mine, 'e');
    assert.deepEqual(await follower.ids(2), ['c', 'e']);
    follower.end();
  });

  it('passes over what a slow follower has no room for, and says how much that was', async () => {
    const follower = await follow('slow', { bufferMessages: 5 });
    const [key = ''] = neighbours(1);
    await follower.append(key, ...numbered(5));
    assert.deepEqual(await follower.ids(5), numbered(5), 'as many as there is room for are told');
    await follower.append(key, ...numbered(20, 5));
    assert.deepEqual(await next(follower.events), { kind: 'dropped', count: 20 });
    await follower.append(key, 'next');
    assert.deepEqual(await follower.ids(1), ['next'], 'and it goes on from there');
    await follower.append(key, ...numbered(3, 50));
    const first = await follower.ids(1);
    await follower.append(key, ...numbered(9, 60));
    const rest = await follower.ids(2);
    assert.deepEqual([...first, ...rest], numbered(3, 50), 'what was read already is told');
    assert.deepEqual(await next(follower.events), { kind: 'dropped', count: 9 });
    follower.end();
  });

  it('accounts for every message, told or dropped, however fast they come', async () => {
    const follower = await follow('flood', { bufferMessages: 40 });
    const total = 3000;
    const flood = (async () => {
      for (let sent = 0; sent < total; sent += 100) {
        await Promise.all(
          Array.from({ length: 100 }, (_value, n) => follower.append(`k${n % 20}`, `f${sent + n}`)),
        );
      }
    })();
    let told = 0;
    let dropped = 0;
    const seen = new Set<string>();
    while (told + dropped < total) {
      const event = await next(follower.events);
      if (event?.kind === 'dropped') dropped += event.count;
      if (event?.kind === 'message') {
        told += 1;
        assert.ok(!seen.has(event.record.id), 'nothing is told twice');
        seen.add(event.record.id);
        // A reader that takes its time.
        if (told % 10 === 0) await pause(1);
      }
    }
    await flood;
    assert.equal(told + dropped, total);
    follower.end();
  });

  it('says what was trimmed away before it could be told', async () => {
    const follower = await follow('trimmed');
    const [key = ''] = neighbours(1);
    await follower.append(key, ...numbered(10));
    const partition = partitionOf(key);
    await site.log.trim({ ...topic, topicName: 'trimmed', partition }, 4);
    assert.deepEqual(await next(follower.events), { kind: 'dropped', count: 4 });
    assert.deepEqual(await follower.ids(6), numbered(6, 4));
    follower.end();
  });

  it('says again and again that nothing happens, and keeps nothing of it', async () => {
    const follower = await follow('quiet', { quietMilliseconds: 5 });
    for (let time = 0; time < 10; time += 1) {
      assert.deepEqual(await next(follower.events), { kind: 'quiet' });
    }
    assert.equal(getEventListeners(follower.signal, 'abort').length, 0);
    await follower.append('a', 'at last');
    let event = await next(follower.events);
    while (event?.kind === 'quiet') event = await next(follower.events);
    assert.equal(event?.kind, 'message');
    follower.end();
  });

  it('says that nothing happens to a key also while its neighbours are busy', async () => {
    const [mine = '', neighbour = ''] = neighbours(2);
    const follower = await follow('busy', { messageKey: mine, quietMilliseconds: 200 });
    const busy = new AbortController();
    const noise = (async () => {
      for (let sent = 0; !busy.signal.aborted; sent += 1) {
        await follower.append(neighbour, `noise-${sent}`);
        await pause(5);
      }
    })();
    try {
      assert.deepEqual(await next(follower.events), { kind: 'quiet' });
    } finally {
      busy.abort();
      await noise;
      follower.end();
    }
  });

  it('ends when told to, whether it waits or speaks, and listens no more', async () => {
    const own = await openLog();
    try {
      const ending = new AbortController();
      const options = { topic, signal: ending.signal };
      const waiting = tail(own.log, options);
      const speaking = tail(own.log, options);
      const left = tail(own.log, options);
      await Promise.all([next(waiting), next(speaking), next(left)]);
      assert.equal(own.listeners(), 3);
      await own.log.append(['1', '2', '3'].map((id) => entry('a', id)));
      for (const events of [waiting, speaking, left]) await next(events);
      await left.return(undefined);
      assert.equal(own.listeners(), 2, 'one that is left listens no more');
      await next(waiting);
      await next(waiting);
      const end = next(waiting);
      ending.abort();
      assert.equal(await end, undefined);
      assert.equal(await next(speaking), undefined, 'and does not go on with what it has read');
      assert.equal(own.listeners(), 0);
      assert.equal(getEventListeners(ending.signal, 'abort').length, 0);
      assert.equal(await next(tail(own.log, options)), undefined, 'nor begins when it is over already');
      assert.equal(own.listeners(), 0);
    } finally {
      await own.close();
    }
  });

  it('fails when the log does, and listens no more', async () => {
    const own = await openLog();
    const { signal } = new AbortController();
    await own.close();
    await assert.rejects(next(tail(own.log, { topic, signal })), { name: 'EventLogUnavailableError' });
    assert.equal(own.listeners(), 0);
  });
});
