import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { it } from 'node:test';
import { runCrashRounds, summaryOf } from './rounds.ts';

const rounds = 20;

it('keeps what it acknowledged, once and in order, however often it is killed', {
  timeout: 180_000,
}, async (context) => {
  const outcome = await runCrashRounds({ rounds, seed: randomInt(2 ** 31), writers: 3 });
  const summary = summaryOf(outcome);
  context.diagnostic(summary);
  const kept = outcome.dataDirectory === undefined ? '' : `; the data is kept in ${outcome.dataDirectory}`;
  assert.deepEqual(outcome.violations, [], `${summary}${kept}`);
  assert.ok(outcome.acknowledged > rounds, 'there was something to lose');
});
