import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import type { Database } from '../database/database.ts';
import { openTestSqlite } from '../database/sqlite/testing.fixture.ts';
import type { EventLog } from '../events/events.ts';
import {
  consumer,
  message,
  openTestEvents,
  organizationId,
  startNode,
  textOf,
  until,
} from './consumers.fixture.ts';
import type { ConsumerRunner } from './runner.ts';

describe('trimming the log', { timeout: 60_000 }, () => {
  let database: Database;
  let closeDatabase: () => Promise<void>;
  let events: EventLog;
  let closeEvents: () => Promise<void>;
  const runners: ConsumerRunner[] = [];
  const start = (retentionMilliseconds: number) => {
    const runner = startNode(database, events, 'n1', { timings: { retentionMilliseconds } });
    runners.push(runner);
    return runner;
  };
  const topic = { organizationId, topicName: 'orders' };
  const trimmed = async () => {
    const bounds = await events.bounds(topic);
    return {
      partitions: bounds.length,
      trimmed: bounds.filter(({ trimmedThrough, last }) => trimmedThrough === last).length,
    };
  };
  const messages = (text: string, acceptedAt = Date.now() - 1000) =>
    Array.from({ length: 40 }, (_, index) => message(`k${index}`, text, { acceptedAt }));

  beforeEach(async () => {
    ({ database, close: closeDatabase } = await openTestSqlite());
    ({ events, close: closeEvents } = await openTestEvents());
  });
  afterEach(async () => {
    await Promise.all(runners.splice(0).map((runner) => runner.close()));
    await closeEvents();
    await closeDatabase();
  });

  test('what every consumer has passed goes, once it is old enough', async () => {
    const runner = start(60_000);
    const one = runner.register(consumer(async () => []));
    await events.append(messages('old', Date.now() - 120_000));
    await events.append(messages('new'));
    await until('passed', async () => (await one.status()).lag === 0);
    await runner.trimLog();
    for (const { partition } of await events.bounds(topic)) {
      const left = await events.read({ ...topic, partition }, 0, { records: 100, bytes: 1_000_000 });
      assert.ok(left.length > 0 && left.every((record) => textOf(record) === 'new'));
    }
  });

  test('a consumer that is behind, or has not begun, keeps what it needs', async () => {
    const runner = start(0);
    const one = runner.register(consumer(async () => []));
    const slow = runner.register(consumer(async () => [], { id: `lake/${organizationId}` }));
    await until('both here', async () => (await runner.figures.read()).length === 2);
    await events.append(messages('1'));
    await until('both passed', async () => (await one.status()).lag + (await slow.status()).lag === 0);
    await slow.pause();
    await events.append(messages('2'));
    await until('one passed', async () => (await one.status()).lag === 0);
    await runner.trimLog();
    for (const { partition } of await events.bounds(topic)) {
      const left = await events.read({ ...topic, partition }, 0, { records: 100, bytes: 1_000_000 });
      assert.ok(left.length > 0 && left.every((record) => textOf(record) === '2'));
    }
    await slow.remove();
    await runner.trimLog();
    assert.equal((await trimmed()).trimmed, 0, 'one that is only removed may come back');
    await runner.forget(organizationId, `lake/${organizationId}`);
    const seen: string[] = [];
    // It has no cursor yet when the log is trimmed.
    runner.register(
      consumer(
        async (batch) => {
          seen.push(...batch.map(({ record }) => textOf(record)));
          return [];
        },
        { id: `store/${organizationId}` },
      ),
    );
    await runner.trimLog();
    await until('it saw what was left', () => seen.length === 40);
    await until('all trimmed', async () => {
      await runner.trimLog();
      const state = await trimmed();
      return state.trimmed === state.partitions;
    });
  });

  test('a topic that nobody reads is kept for its time and not longer', async () => {
    const runner = start(60_000);
    await until('alive', async () => {
      await runner.trimLog();
      return (await database.query.selectFrom('consumer_nodes').select('id').execute()).length === 1;
    });
    await events.append(messages('old', Date.now() - 120_000));
    await until('trimmed', async () => {
      await runner.trimLog();
      const state = await trimmed();
      return state.trimmed === state.partitions;
    });
  });

  test('parked records outlive the log, with their order and what waits behind them', async () => {
    const runner = start(0);
    let broken = true;
    const seen: string[] = [];
    const one = runner.register(
      consumer(
        async (batch) => {
          if (broken && batch.some(({ record }) => record.key === 'k7')) throw new Error('broken');
          seen.push(...batch.filter(({ record }) => record.key === 'k7').map(({ record }) => textOf(record)));
          return [];
        },
        { batchSize: 1, maxAttempts: 1000 },
      ),
    );
    for (let round = 0; round < 150; round += 1) await events.append([message('k7', String(round))]);
    await until('parked', async () => {
      const { lag, parked } = await one.status();
      return lag === 0 && parked === 150;
    });
    await runner.trimLog();
    const state = await trimmed();
    assert.equal(state.trimmed, state.partitions);
    broken = false;
    await until('all handled', async () => (await one.status()).parked === 0);
    assert.deepEqual(
      seen,
      Array.from({ length: 150 }, (_, index) => String(index)),
    );
  });
});
