import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import type { Database } from '../database/database.ts';
import { openTestSqlite } from '../database/sqlite/testing.fixture.ts';
import { type EventLog, EventLogUnavailableError } from '../events/events.ts';
import type { Delivery } from './consumer.ts';
import {
  consumer,
  message,
  openTestEvents,
  organizationId,
  startNode,
  textOf,
  until,
  wayTo,
} from './consumers.fixture.ts';
import type { ConsumerRunner } from './runner.ts';

describe('the consumer runner', { timeout: 120_000 }, () => {
  let database: Database;
  let closeDatabase: () => Promise<void>;
  let events: EventLog;
  let closeEvents: () => Promise<void>;
  const runners: ConsumerRunner[] = [];
  const start = (
    ...options: Parameters<typeof startNode> extends [unknown, unknown, ...infer Rest] ? Rest : never
  ) => {
    const runner = startNode(database, events, ...options);
    runners.push(runner);
    return runner;
  };
  const publish = (key: string, ...texts: string[]) => events.append(texts.map((text) => message(key, text)));

  beforeEach(async () => {
    ({ database, close: closeDatabase } = await openTestSqlite());
    ({ events, close: closeEvents } = await openTestEvents());
  });
  afterEach(async () => {
    await Promise.all(runners.splice(0).map((runner) => runner.close()));
    await closeEvents();
    await closeDatabase();
  });

  test('hands over what was there before and what comes after, by key in order', async () => {
    const seen: string[] = [];
    await publish('a', '1', '2');
    const registration = start('n1').register(
      consumer(async (batch) => {
        seen.push(...batch.map(({ record }) => `${record.key}${textOf(record)}`));
        return [];
      }),
    );
    await until('the first', () => seen.length === 2);
    await publish('b', '1');
    await publish('a', '3');
    await until('the rest', () => seen.length === 4);
    assert.deepEqual(
      seen.filter((one) => one.startsWith('a')),
      ['a1', 'a2', 'a3'],
    );
    await until('the cursors', async () => (await registration.status()).lag === 0);
    assert.deepEqual(await registration.status(), {
      lag: 0,
      oldestAgeMilliseconds: 0,
      parked: 0,
      inFlight: 0,
    });
  });

  test('goes on where it stopped', async () => {
    const seen: string[] = [];
    const one = consumer(async (batch) => {
      seen.push(...batch.map(({ record }) => textOf(record)));
      return [];
    });
    await publish('a', '1', '2');
    const first = start('n1');
    first.register(one);
    await until('two', () => seen.length === 2);
    await first.close();
    await publish('a', '3');
    start('n2').register(one);
    await until('three', () => seen.length === 3);
    assert.deepEqual(seen, ['1', '2', '3']);
  });

  test('a poison message holds back its own key only, and becomes a dead letter', async () => {
    const seen: string[] = [];
    const attempts: number[] = [];
    const runner = start('n1');
    await events.append([
      ...['1', '2', '3'].map((text) => message('bad', text)),
      ...Array.from({ length: 200 }, (_, index) => message(`good ${index % 20}`, String(index))),
    ]);
    const registration = runner.register(
      consumer(async (batch) => {
        const failures = batch.flatMap(({ record, attempt }, index) => {
          if (record.key !== 'bad' || textOf(record) !== '1') return [];
          attempts.push(attempt);
          return [{ index, error: 'no good' }];
        });
        for (const [index, { record }] of batch.entries()) {
          if (!failures.some((failure) => failure.index === index))
            seen.push(`${record.key} ${textOf(record)}`);
        }
        return failures;
      }),
    );
    const { id } = consumer(async () => []);
    await until('all', () => new Set(seen).size === 202 && attempts.length === 3 && seen.at(-1) === 'bad 3');
    assert.deepEqual(attempts, [1, 2, 3]);
    const after = seen.slice(seen.lastIndexOf('bad 2'));
    assert.deepEqual(
      after.filter((one) => one.startsWith('bad')),
      ['bad 2', 'bad 3'],
    );
    await until('nothing parked', async () => (await registration.status()).parked === 0);
    const page = await runner.deadLetters.list(organizationId, id, undefined, 10);
    assert.equal(page.next, undefined);
    const [letter] = page.letters;
    assert.equal(page.letters.length, 1);
    assert.equal(letter && textOf(letter.record), '1');
    assert.equal(letter?.error, 'no good');
    assert.equal(letter?.attempts, 3);
    assert.deepEqual(await runner.deadLetters.list('o2', id, undefined, 10), {
      letters: [],
      next: undefined,
    });
    const [figures] = await runner.figures.read();
    assert.equal(figures?.kind, 'task');
    assert.equal(figures?.deadLettered, 1);
    assert.equal(figures?.lag, 0);
  });

  test('a failure that is final is not tried again', async () => {
    const runner = start('n1');
    let calls = 0;
    const one = consumer(async () => {
      calls += 1;
      return [{ index: 0, error: 'lacks a field', final: true }];
    });
    runner.register(one);
    await publish('a', '1');
    const list = () => runner.deadLetters.list(organizationId, one.id, undefined, 10);
    await until('the dead letter', async () => (await list()).letters.length === 1);
    assert.equal(calls, 1);
    assert.equal((await list()).letters[0]?.attempts, 1);
  });

  test('dead letters are redriven in order, by choice or all, and purged', async () => {
    const runner = start('n1');
    let broken = true;
    const seen: string[] = [];
    const one = consumer(
      async (batch) => {
        if (broken) throw new Error('broken');
        seen.push(...batch.map(({ record }) => textOf(record)));
        return [];
      },
      { maxAttempts: 2 },
    );
    const registration = runner.register(one);
    await publish('a', ...Array.from({ length: 70 }, (_, index) => String(index)));
    const list = (limit = 1000) => runner.deadLetters.list(organizationId, one.id, undefined, limit);
    await until('70 dead letters', async () => (await list()).letters.length === 70);
    assert.equal((await list(20)).letters.length, 20);
    const second = await runner.deadLetters.list(organizationId, one.id, (await list(20)).next, 60);
    assert.equal(second.letters.length, 50);
    broken = false;
    const [first, last] = [(await list()).letters[0]?.id ?? '', second.letters.at(-1)?.id ?? ''];
    assert.equal(await runner.deadLetters.redrive('o2', one.id), 0);
    assert.equal(await runner.deadLetters.redrive(organizationId, one.id, [first, last, 'unknown']), 2);
    await until('two of them', () => seen.length === 2);
    assert.deepEqual(seen, ['0', '69']);
    assert.equal(await runner.deadLetters.redrive(organizationId, one.id), 68);
    await until('all of them', () => seen.length === 70);
    assert.deepEqual(
      seen.slice(2),
      Array.from({ length: 68 }, (_, index) => String(index + 1)),
    );
    assert.equal((await list()).letters.length, 0);
    await until('nothing is parked', async () => (await registration.status()).parked === 0);
    broken = true;
    await publish('b', 'x');
    await until('one more', async () => (await list()).letters.length === 1);
    assert.equal(await runner.deadLetters.purge(organizationId, one.id), 1);
    assert.equal((await list()).letters.length, 0);
  });

  test('a record that brought down a batch is tried alone, and the rest of the batch survives', async () => {
    const runner = start('n1');
    const handled = new Set<string>();
    const one = consumer(
      async (batch) => {
        if (batch.some(({ record }) => textOf(record) === 'poison')) throw new Error('crash');
        for (const { record } of batch) handled.add(textOf(record));
        return [];
      },
      { batchSize: 100 },
    );
    await events.append([
      ...Array.from({ length: 30 }, (_, index) => message(`k${index}`, String(index))),
      message('bad', 'poison'),
      ...Array.from({ length: 30 }, (_, index) => message(`k${index}`, String(index + 30))),
    ]);
    runner.register(one);
    await until('the others', () => handled.size === 60);
    const list = () => runner.deadLetters.list(organizationId, one.id, undefined, 100);
    await until('the poison', async () => (await list()).letters.length === 1);
    assert.equal((await list()).letters[0]?.error, 'crash');
  });

  test('pausing lets what is in hand finish and hands out nothing until resumed', async () => {
    const runner = start('n1');
    const gate = Promise.withResolvers<void>();
    const seen: string[] = [];
    const registration = runner.register(
      consumer(
        async (batch) => {
          seen.push(...batch.map(({ record }) => textOf(record)));
          await gate.promise;
          return [];
        },
        { batchSize: 1 },
      ),
    );
    await publish('a', '1', '2');
    await until('one in hand', () => seen.length === 1);
    let paused = false;
    const pausing = registration.pause().then(() => {
      paused = true;
    });
    assert.equal((await registration.status()).inFlight, 1);
    assert.equal(paused, false);
    gate.resolve();
    await pausing;
    await until('its cursor', async () => (await registration.status()).lag === 1);
    await publish('b', '3');
    await until('a heartbeat or two', async () => (await registration.status()).oldestAgeMilliseconds > 200);
    assert.deepEqual(seen, ['1']);
    registration.resume();
    await until('the rest', () => seen.length === 3);
  });

  test('records that are not selected are passed over, and a consumer may begin at the end', async () => {
    const runner = start('n1');
    const seen: string[] = [];
    const other = { streams: ['other'], lake: true, store: false };
    const old = { acceptedAt: Date.now() - 10_000 };
    await events.append([
      message('a', 'old', old),
      message('b', 'old', old),
      message('a', 'unrouted', { ...old, routes: other }),
    ]);
    const handle = async (batch: readonly Delivery[]) => {
      seen.push(...batch.map(({ record }) => textOf(record)));
      return [];
    };
    const registration = runner.register(consumer(handle, { startAt: 'end' }));
    await until('nothing to do', async () => (await registration.status()).lag === 0);
    await events.append([
      message('a', 'new'),
      message('a', 'skip', { routes: other }),
      message('c', 'newer'),
    ]);
    await until('the new', () => seen.length === 2);
    await until('all passed', async () => (await registration.status()).lag === 0);
    assert.deepEqual(seen.sort(), ['new', 'newer']);
  });

  test('one key is never in two calls at a time, while other keys go on beside it', async () => {
    const runner = start('n1');
    const active = new Set<string>();
    const wrong: string[] = [];
    let most = 0;
    let count = 0;
    runner.register(
      consumer(
        async (batch) => {
          const keys = new Set(batch.map(({ record }) => record.key));
          for (const key of keys) {
            if (active.has(key)) wrong.push(key);
            active.add(key);
          }
          most = Math.max(most, active.size);
          await new Promise((resolve) => setTimeout(resolve, 1));
          for (const key of keys) active.delete(key);
          count += batch.length;
          return [];
        },
        { batchSize: 1, concurrency: 40 },
      ),
    );
    // All keys are of one partition, so it is the keys that are worked on side by side.
    await events.append(
      Array.from({ length: 1000 }, (_, index) =>
        message(`k${Math.floor(index / 5)}`, String(index), { partition: 7 }),
      ),
    );
    await until('all', () => count === 1000);
    assert.deepEqual(wrong, []);
    assert.ok(most > 16, `${most} at once`);
  });

  test('the whole failing, calls come ever more slowly and the log stays where it is', async () => {
    const runner = start('n1', { limits: { parkedKeys: 50 } });
    let calls = 0;
    let broken = true;
    const handled = new Set<string>();
    const registration = runner.register(
      consumer(
        async (batch) => {
          calls += 1;
          if (broken) throw new Error('the whole is down');
          for (const { record } of batch) handled.add(record.key);
          return [];
        },
        { maxAttempts: 1_000, retry: { firstMilliseconds: 20, mostMilliseconds: 200 } },
      ),
    );
    await events.append(Array.from({ length: 2_000 }, (_, index) => message(`k${index}`, 'x')));
    const waited = performance.now() + 1_000;
    await until('a second', () => performance.now() > waited);
    const { parked } = await registration.status();
    assert.ok(parked >= 30 && parked <= 70, `${parked} parked`);
    assert.ok(calls < 1_000, `${calls} calls`);
    broken = false;
    await until('all', () => handled.size === 2_000);
  });

  test('a log that cannot be read for a while is read later', async () => {
    let refused = 0;
    let broken = true;
    const read: EventLog['read'] = async (...question) => {
      if (!broken) return events.read(...question);
      refused += 1;
      throw new EventLogUnavailableError('The log cannot be read');
    };
    const seen: string[] = [];
    const runner = startNode(database, { ...wayTo(events), read }, 'n1');
    runners.push(runner);
    runner.register(
      consumer(async (batch) => {
        seen.push(...batch.map(({ record }) => textOf(record)));
        return [];
      }),
    );
    await publish('a', '1');
    await until('tries', () => refused === 3);
    broken = false;
    await until('one', () => seen.length === 1);
  });

  test('keys and errors with characters that no database stores are parked all the same', async () => {
    const runner = start('n1');
    const key = 'a\0\\0b';
    const one = consumer(async () => {
      throw new Error(`bad\0${'x'.repeat(10_000)}`);
    });
    runner.register(one);
    await events.append([message(key, '1', { id: '\0id' })]);
    const list = () => runner.deadLetters.list(organizationId, one.id, undefined, 10);
    await until('the dead letter', async () => (await list()).letters.length === 1);
    const [letter] = (await list()).letters;
    assert.equal(letter?.record.key, key);
    assert.equal(letter?.record.id, '\0id');
    assert.ok(letter?.error.startsWith('bad\uFFFD') && letter.error.length === 4_000);
  });

  test('a consumer that is removed and forgotten begins anew, one that is only removed does not', async () => {
    const runner = start('n1');
    let count = 0;
    const one = consumer(async (batch) => {
      count += batch.length;
      return [];
    });
    await publish('a', '1', '2');
    const first = runner.register(one);
    assert.throws(() => runner.register(one), /registered already/);
    await until('two', () => count === 2);
    await first.remove();
    const second = runner.register(one);
    await until('ready', async () => (await second.status()).lag === 0);
    await publish('a', '3');
    await until('three', () => count === 3);
    await second.remove();
    await runner.forget('o2', one.id);
    await runner.forget(organizationId, one.id);
    runner.register(one);
    await until('all again', () => count === 6);
  });

  test('closing aborts what does not end in time', async () => {
    const runner = start('n1', { timings: { drainMilliseconds: 50 } });
    let aborted = false;
    runner.register(
      consumer(async (_batch, signal) => {
        await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
        aborted = true;
        throw new Error('aborted');
      }),
    );
    await publish('a', '1');
    await until('in hand', async () => ((await runner.figures.read())[0]?.inFlight ?? 0) === 1);
    await runner.close();
    assert.ok(aborted);
    const seen: number[] = [];
    start('n2').register(
      consumer(async (batch) => {
        seen.push(...batch.map(({ attempt }) => attempt));
        return [];
      }),
    );
    await until('again', () => seen.length === 1);
    assert.deepEqual(seen, [1], 'an aborted call is no attempt');
  });
});
