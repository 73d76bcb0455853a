import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { amountOf } from './amount.ts';

describe('an amount', () => {
  it('is one thing, or several', () => {
    const amounts = [0, 1, 2, 20_000].map((count) => amountOf(count, 'message'));
    assert.deepEqual(amounts, ['0 messages', '1 message', '2 messages', '20,000 messages']);
  });
});
