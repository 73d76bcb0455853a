import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { it } from 'node:test';
import { runChaos, summaryOf } from './tasks.ts';

const serverKills = 4;

it('brings every message through two tasks in order, and counts it, however often they are killed', {
  timeout: 180_000,
}, async (context) => {
  const outcome = await runChaos({
    messages: 3_000,
    keys: 100,
    serverKills,
    seed: randomInt(2 ** 31),
    limitMilliseconds: 150_000,
  });
  const summary = summaryOf(outcome);
  context.diagnostic(summary);
  const kept = outcome.dataDirectory === undefined ? '' : `; the data is kept in ${outcome.dataDirectory}`;
  assert.deepEqual(outcome.violations, [], `${summary}${kept}`);
  assert.equal(outcome.serverKills, serverKills);
  if (process.platform === 'linux') assert.ok(outcome.taskKills > 0, 'processes of tasks were killed');
});
