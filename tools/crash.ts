/**
 * Kills the service again and again while writers publish, and checks in the end that everything that was
 * acknowledged is there, once and in order.
 *
 *     npm run crash -- --rounds 1000 [--seed N] [--writers N]
 */
import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { runCrashRounds, summaryOf } from '../acceptance/crash/rounds.ts';

const shownViolations = 20;

function numberOf(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1) {
    console.error(`--${name} takes a whole number from 1 on, and not ${text}.`);
    process.exit(78);
  }
  return value;
}

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '100' },
    seed: { type: 'string', default: String(randomInt(1, 2 ** 31)) },
    writers: { type: 'string', default: '4' },
  },
});
const rounds = numberOf('rounds', values.rounds);
const seed = numberOf('seed', values.seed);
const writers = numberOf('writers', values.writers);
const every = Math.max(1, Math.floor(rounds / 20));

console.log(`${rounds} rounds with ${writers} writers and the seed ${seed}`);
const outcome = await runCrashRounds({
  rounds,
  seed,
  writers,
  onRound: (round) => {
    if (round % every === 0) console.log(`round ${round} of ${rounds}`);
  },
});
for (const violation of outcome.violations.slice(0, shownViolations)) console.error(violation);
console.log(summaryOf(outcome));
if (outcome.dataDirectory !== undefined) {
  console.error(`The data is kept in ${outcome.dataDirectory}; repeat with --seed ${seed}.`);
  process.exitCode = 1;
}
