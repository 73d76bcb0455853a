import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { openTestSqlite } from '../database/sqlite/testing.fixture.ts';
import type { EventLog } from '../events/events.ts';
import { consumer, message, openTestEvents, startNode, until, wayTo } from './consumers.fixture.ts';
import { MemoryLog } from './memory-log.fixture.ts';

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

/** A log whose reads give bodies of their own, as those of a real one do. */
function copying(log: MemoryLog, bytes: number): EventLog {
  return {
    ...wayTo(log),
    read: async (address, after, limits) => {
      const fitting = { ...limits, records: Math.min(limits.records, Math.ceil(limits.bytes / bytes)) };
      const records = await log.read(address, after, fitting);
      return records.map((record) => ({ ...record, body: new Uint8Array(bytes).fill(1) }));
    },
  };
}

const logs = [
  ['in memory', async () => ({ events: new MemoryLog(), close: async () => {} })],
  ['in SQLite', openTestEvents],
] as const;

describe('the bounds of the consumer runner', { timeout: 180_000 }, () => {
  test('a poison key with ten thousand records takes no memory and does not slow the others', async (context) => {
    const { database, close } = await openTestSqlite();
    const log = new MemoryLog();
    const runner = startNode(database, copying(log, 20_000), 'n1');
    try {
      await log.append(
        Array.from({ length: 12_000 }, (_, index) =>
          index % 6 === 5
            ? message(`good ${index % 100}`, 'x', { partition: 3 })
            : message('poison', 'x', { partition: 3 }),
        ),
      );
      collectGarbage();
      const before = process.memoryUsage();
      let most = 0;
      let looks = 0;
      const handled = new Set<number>();
      const began = performance.now();
      const registration = runner.register(
        consumer(
          async (batch) => {
            const failures = [];
            for (const [index, { record }] of batch.entries()) {
              if (record.key === 'poison') failures.push({ index, error: 'poison' });
              else handled.add(record.offset);
            }
            return failures;
          },
          { maxAttempts: 1_000, retry: { firstMilliseconds: 100, mostMilliseconds: 1_000 } },
        ),
      );
      await until(
        'the others',
        () => {
          looks += 1;
          if (looks % 5 === 0) {
            // Without this, most of what is seen are bodies that nobody has any more.
            collectGarbage();
            most = Math.max(most, process.memoryUsage().arrayBuffers - before.arrayBuffers);
          }
          return handled.size === 2_000;
        },
        60_000,
      );
      const took = performance.now() - began;
      assert.ok(most < 64 * 2 ** 20, `${most} bytes of bodies were held at once`);
      await until('all parked', async () => (await registration.status()).parked === 10_000, 60_000);
      // What was just read ahead may still be in hand for a moment; what is kept for good stays.
      let grown = Number.POSITIVE_INFINITY;
      await until(
        'no more than a little memory is kept',
        () => {
          collectGarbage();
          const after = process.memoryUsage();
          grown = (after.heapUsed + after.arrayBuffers - before.heapUsed - before.arrayBuffers) / 2 ** 20;
          return grown < 20;
        },
        20_000,
      );
      context.diagnostic(
        `2,000 others in ${Math.round(took)} ms; ${grown.toFixed(1)} MiB kept, at most ${(most / 2 ** 20).toFixed(0)} MiB of bodies at once`,
      );
    } finally {
      await runner.close();
      await close();
    }
  });

  test('what is read ahead is bounded in bytes, for one consumer and for all of a node', async () => {
    const { database, close } = await openTestSqlite();
    const log = new MemoryLog();
    const runner = startNode(database, copying(log, 100_000), 'n1', {
      limits: { memoryBytes: 16 * 2 ** 20 },
      timings: { leaseMilliseconds: 10_000 },
    });
    const gate = Promise.withResolvers<void>();
    let handled = 0;
    try {
      await log.append(Array.from({ length: 4_000 }, (_, index) => message(`k${index}`, 'x')));
      collectGarbage();
      const before = process.memoryUsage().arrayBuffers;
      for (let one = 0; one < 8; one += 1) {
        runner.register(
          consumer(
            async (batch) => {
              await gate.promise;
              handled += batch.length;
              return [];
            },
            { id: `task/o1/t${one}`, batchSize: 1 },
          ),
        );
      }
      await until('all in hand', async () => (await runner.figures.read())[0]?.inFlight === 8);
      await until('nothing more is read', async () => {
        collectGarbage();
        return (process.memoryUsage().arrayBuffers - before) / 2 ** 20 < 80;
      });
      gate.resolve();
      await until('all', () => handled >= 32_000, 60_000);
    } finally {
      await runner.close();
      await close();
    }
  });

  for (const [kind, open] of logs) {
    test(`a consumer that does nothing gets many records a second from a log ${kind}`, async (context) => {
      const { database, close } = await openTestSqlite();
      const { events, close: closeEvents } = await open();
      const runner = startNode(database, events, 'n1', { timings: { leaseMilliseconds: 10_000 } });
      const total = 200_000;
      let count = 0;
      try {
        const body = Buffer.alloc(200, 'x');
        for (let start = 0; start < total; start += 10_000) {
          await events.append(
            Array.from({ length: 10_000 }, (_, index) =>
              message(`k${(start + index) % 5_000}`, '', { body, id: `${start + index}` }),
            ),
          );
        }
        const began = performance.now();
        const registration = runner.register(
          consumer(
            async (batch) => {
              count += batch.length;
              return [];
            },
            { batchSize: 100 },
          ),
        );
        await until('all', () => count === total, 60_000);
        await until('committed', async () => (await registration.status()).lag === 0);
        const seconds = (performance.now() - began) / 1000;
        context.diagnostic(`${Math.round(total / seconds)} records a second at batch 100`);
        assert.ok(total / seconds > 10_000);
      } finally {
        await runner.close();
        await closeEvents();
        await close();
      }
    });
  }
});
