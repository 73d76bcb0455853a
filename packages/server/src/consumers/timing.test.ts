import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { systemRandom } from '../platform/random.ts';
import { retryDelay } from './backoff.ts';
import { Brake } from './brake.ts';
import { DueQueue } from './due-queue.ts';

const delays = { firstMilliseconds: 100, mostMilliseconds: 5_000 };

describe('the delay before a retry', () => {
  test('doubles up to the most and differs within its upper half', () => {
    for (const [failures, whole] of [
      [1, 100],
      [2, 200],
      [3, 400],
      [7, 5_000],
      [5_000, 5_000],
    ] as const) {
      const found = new Set(Array.from({ length: 200 }, () => retryDelay(delays, failures, systemRandom)));
      assert.ok(found.size > 20);
      for (const one of found) assert.ok(one >= whole / 2 && one <= whole, `${one} of ${whole}`);
    }
  });
});

describe('the brake', () => {
  test('tolerates a bad call or two and then waits longer each time, until one succeeds', () => {
    const brake = new Brake(delays, systemRandom);
    brake.failed(1_000);
    brake.failed(1_000);
    assert.equal(brake.until, 0);
    brake.failed(1_000);
    const first = brake.until - 1_000;
    assert.ok(first >= 50 && first <= 100);
    brake.failed(1_001);
    assert.equal(brake.until, 1_000 + first, 'calls that were under way together count once');
    brake.failed(2_000);
    assert.ok(brake.until - 2_000 >= 100);
    brake.succeeded();
    assert.equal(brake.until, 0);
  });
});

describe('the queue of what is due', () => {
  test('gives everything in order of time, and nothing before its time', () => {
    const queue = new DueQueue<number>();
    const times = Array.from({ length: 500 }, () => systemRandom.integer(300));
    for (const time of times) queue.add(time, time);
    assert.equal(queue.earliest, Math.min(...times));
    const before: number[] = [];
    for (let next = queue.take(150); next !== undefined; next = queue.take(150)) before.push(next.thing);
    const sorted = times.toSorted((left, right) => left - right);
    assert.deepEqual(
      before,
      sorted.filter((time) => time <= 150),
    );
    queue.add(10, 10);
    assert.equal(queue.take(300)?.thing, 10);
    const after: number[] = [];
    for (let next = queue.take(300); next !== undefined; next = queue.take(300)) after.push(next.thing);
    assert.deepEqual(
      after,
      sorted.filter((time) => time > 150),
    );
    assert.equal(queue.size, 0);
  });
});
