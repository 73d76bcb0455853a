import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { partitionCount } from './events.ts';
import { partitionOf } from './partition.ts';

describe('the partition of a key', () => {
  test('is the same for ever', () => {
    const keys = ['', 'a', 'b', 'key', 'customer-1', 'customer-2', 'ключ', '鍵', '🔑', 'x'.repeat(1_024)];
    assert.deepEqual(
      keys.map((key) => partitionOf(key)),
      [9, 0, 3, 0, 7, 10, 0, 10, 9, 9],
    );
  });

  test('spreads keys evenly, also those that differ in one digit', () => {
    for (const keyOf of [
      (number: number) => `customer-${number}`,
      (number: number) => String(number),
      (number: number) => `${number.toString(16).padStart(8, '0')}-7c3e-4a10`,
    ]) {
      const counts = new Array<number>(partitionCount).fill(0);
      const total = 16_000;
      for (let number = 0; number < total; number += 1) {
        const partition = partitionOf(keyOf(number));
        counts[partition] = (counts[partition] ?? 0) + 1;
      }
      for (const count of counts) {
        assert.ok(count > total / partitionCount / 2 && count < (2 * total) / partitionCount, `${counts}`);
      }
    }
  });
});
