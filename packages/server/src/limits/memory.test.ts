import assert from 'node:assert/strict';
import { it } from 'node:test';
import { adjustableClock } from '../platform/clock.ts';
import { limiterSuite } from './limiter.suite.ts';
import { memoryLimiter } from './memory.ts';

limiterSuite('memory', async () => {
  const clock = adjustableClock(1_794_700_800_000);
  const limiter = memoryLimiter(clock);
  return { limiter, pass: async (milliseconds) => clock.advance(milliseconds), close: () => limiter.close() };
});

it('a clock that jumps back does not hand out more, and does not lock anybody out for long', async () => {
  const clock = adjustableClock(1_794_700_800_000);
  const limiter = memoryLimiter(clock);
  const policy = { perSecond: 10, burst: 10 };
  for (let count = 0; count < 10; count += 1) await limiter.take('a', policy);
  clock.advance(-500);
  assert.equal((await limiter.take('a', policy)).allowed, false);
  clock.advance(700);
  assert.equal((await limiter.take('a', policy)).allowed, true);
});
