import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { it } from 'node:test';
import { runCrashRounds, summaryOf } from './rounds.ts';

const rounds = 12;

it('has every acknowledged message in its files once, however often it is killed while it writes them', {
  timeout: 180_000,
}, async (context) => {
  const outcome = await runCrashRounds({
    rounds,
    seed: randomInt(2 ** 31),
    writers: 3,
    // Files all the time, and merges of them, so that the kills find the lake at every step of its work.
    environment: { MILLRACE_LAKE_FILE_BYTES: '20000', MILLRACE_LAKE_UPKEEP_SECONDS: '1' },
    servingMilliseconds: 2_500,
  });
  const summary = summaryOf(outcome);
  context.diagnostic(summary);
  const kept = outcome.dataDirectory === undefined ? '' : `; the data is kept in ${outcome.dataDirectory}`;
  assert.deepEqual(outcome.violations, [], `${summary}${kept}`);
  assert.ok(outcome.acknowledged > rounds, 'there was something to lose');
  assert.ok(outcome.lakeFiles > 0, 'there were files');
});
