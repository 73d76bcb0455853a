/**
 * Kills the service and the processes of its tasks again and again while messages flow through two tasks in
 * a row, and checks in the end that none is missing, out of order or counted wrongly.
 *
 *     npm run chaos -- --messages 50000 --keys 500 [--kills N] [--seed N] [--sandbox auto|bubblewrap|none]
 */
import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { type ChaosOptions, runChaos, summaryOf } from '../acceptance/crash/tasks.ts';

const shownViolations = 20;
/** Enough for a machine that has other work to do as well. */
const millisecondsForMessage = 60;
const leastMilliseconds = 180_000;

function refuse(sentence: string): never {
  console.error(sentence);
  process.exit(78);
}

function numberOf(name: string, text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= 1) return value;
  return refuse(`--${name} takes a whole number from 1 on, and not ${text}.`);
}

function sandboxOf(text: string): NonNullable<ChaosOptions['sandbox']> {
  if (text === 'auto' || text === 'bubblewrap' || text === 'none') return text;
  return refuse(`--sandbox takes auto, bubblewrap or none, and not ${text}.`);
}

const { values } = parseArgs({
  options: {
    messages: { type: 'string', default: '10000' },
    keys: { type: 'string', default: '200' },
    kills: { type: 'string', default: '25' },
    seed: { type: 'string', default: String(randomInt(1, 2 ** 31)) },
    sandbox: { type: 'string', default: 'auto' },
  },
});
const messages = numberOf('messages', values.messages);
const keys = numberOf('keys', values.keys);
const serverKills = numberOf('kills', values.kills);
const seed = numberOf('seed', values.seed);

console.log(`${messages} messages over ${keys} keys with ${serverKills} kills and the seed ${seed}`);
const outcome = await runChaos({
  messages,
  keys,
  serverKills,
  seed,
  sandbox: sandboxOf(values.sandbox),
  limitMilliseconds: Math.max(leastMilliseconds, messages * millisecondsForMessage),
  onKill: (kill, through) => console.log(`kill ${kill} of ${serverKills} after ${through} messages`),
});
for (const violation of outcome.violations.slice(0, shownViolations)) console.error(violation);
console.log(summaryOf(outcome));
if (outcome.dataDirectory !== undefined) {
  console.error(`The data is kept in ${outcome.dataDirectory}; repeat with --seed ${seed}.`);
  process.exitCode = 1;
}
