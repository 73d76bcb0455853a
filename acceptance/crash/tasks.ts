/**
 * The chaos test of tasks: messages flow through two tasks in a row while their processes and the service
 * itself are killed at random, and in the end nothing is missing, in the wrong order, or counted wrongly.
 *
 * The seed decides what is sent and when a kill is due; what the machine does in between is not in its hands.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { figure } from '../harness/metrics.ts';
import { killAtOnce, taskProcessesOf } from '../harness/processes.ts';
import { type RunningService, startService } from '../harness/service.ts';
import {
  type Counters,
  countedBy,
  deployChain,
  examine,
  type Findings,
  readCounters,
  topics,
} from './chain.ts';
import { type Message, publish } from './publisher.ts';
import { type SeededRandom, seededRandom } from './random.ts';
import { damages, readLog } from './read-log.ts';
import { newPublishing, type Publishing } from './site.ts';

export interface ChaosOptions {
  readonly messages: number;
  readonly keys: number;
  /** How often the service is killed. Processes of tasks are killed about every two seconds all the time. */
  readonly serverKills: number;
  readonly seed: number;
  /** What tasks run in; plain processes unless told. */
  readonly sandbox?: 'auto' | 'bubblewrap' | 'none';
  /** After this long it is given up. */
  readonly limitMilliseconds: number;
  /** Hears after each kill of the service how many messages have gone through. */
  onKill?(kill: number, through: number): void;
}

export interface ChaosOutcome extends Findings {
  readonly seed: number;
  readonly messages: number;
  readonly keys: number;
  readonly serverKills: number;
  readonly taskKills: number;
  readonly milliseconds: number;
  /** Kept when something is wrong. */
  readonly dataDirectory: string | undefined;
}

/** What goes through all lives of the service. */
interface Run {
  readonly options: ChaosOptions;
  readonly dataDirectory: string;
  readonly random: SeededRandom;
  readonly sent: readonly Message[];
  readonly end: number;
  publishing: Publishing | undefined;
  /** How many of the messages were acknowledged. */
  acknowledged: number;
  serverKills: number;
  taskKills: number;
}

const batchSize = 100;
/** Messages that may be on their way: few enough that kills meet all of the run, and not only its start. */
const mostUnderway = 1_000;
const pollMilliseconds = 100;
const timesInARow = 5;

export async function runChaos(options: ChaosOptions): Promise<ChaosOutcome> {
  const began = performance.now();
  const random = seededRandom(options.seed);
  const run: Run = {
    options,
    dataDirectory: await mkdtemp(join(tmpdir(), 'millrace-chaos-')),
    random: random.fork(),
    sent: messagesOf(options, random.fork()),
    end: began + options.limitMilliseconds,
    publishing: undefined,
    acknowledged: 0,
    serverKills: 0,
    taskKills: 0,
  };
  let findings: Findings;
  try {
    const counters = await live(run, nextKills(options, random.fork()));
    const stored = await readLog(run.dataDirectory);
    const found = examine(run.sent, stored, counters);
    findings = { ...found, violations: [...found.violations, ...(await damages(run.dataDirectory))] };
  } catch (error) {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    findings = { violations: [text], repeated: 0, overcounted: 0 };
  }
  const isWell = findings.violations.length === 0;
  if (isWell) await rm(run.dataDirectory, { recursive: true, force: true });
  return {
    ...findings,
    seed: options.seed,
    messages: options.messages,
    keys: options.keys,
    serverKills: run.serverKills,
    taskKills: run.taskKills,
    milliseconds: performance.now() - began,
    dataDirectory: isWell ? undefined : run.dataDirectory,
  };
}

export function summaryOf(outcome: ChaosOutcome): string {
  const { messages, keys, serverKills, taskKills, repeated, overcounted, milliseconds, seed, violations } =
    outcome;
  return [
    `${messages} messages over ${keys} keys`,
    `${serverKills} kills of the service`,
    `${taskKills} of task processes`,
    `${repeated} came again`,
    `naive counters ${overcounted} too high`,
    `${(milliseconds / 1000).toFixed(1)} s`,
    `seed ${seed}`,
    violations.length === 0 ? 'nothing lost' : `${violations.length} violations`,
  ].join(', ');
}

/** Ids sort in the order of their key, so that the last one counted says which are. */
function messagesOf({ messages, keys }: ChaosOptions, random: SeededRandom): Message[] {
  const sequences = Array.from({ length: keys }, () => 0);
  return Array.from({ length: messages }, () => {
    const number = random.between(0, keys - 1);
    const sequence = (sequences[number] ?? 0) + 1;
    sequences[number] = sequence;
    const key = `key-${number}`;
    return {
      id: `${key}-${String(sequence).padStart(6, '0')}`,
      key,
      sequence,
      filling: random.between(0, 80),
    };
  });
}

/** A kill of the service is due some time after so many messages have gone through. */
interface Kill {
  readonly through: number;
  readonly delayMilliseconds: number;
}

function nextKills({ serverKills, messages }: ChaosOptions, random: SeededRandom): Kill[] {
  const kills: Kill[] = [];
  for (let number = 0; number < serverKills; number += 1) {
    const before = kills.at(-1)?.through ?? 0;
    // Some come right after the service is back, when nothing has moved on yet.
    const through = random.chance(0.25)
      ? before
      : Math.floor(((number + random.next()) * messages) / serverKills);
    kills.push({ through, delayMilliseconds: random.between(0, 400) });
  }
  return kills;
}

/** All lives of the service, the last of which ends when everything has gone through. */
async function live(run: Run, kills: readonly Kill[]): Promise<Counters> {
  for (const kill of [...kills, undefined]) {
    const { dataDirectory, options } = run;
    const environment = { MILLRACE_TASK_SANDBOX: options.sandbox ?? 'none' };
    const service = await startService({ dataDirectory, environment });
    try {
      const through = await work(run, service, kill);
      if (kill === undefined) return await close(run, service);
      run.serverKills += 1;
      options.onKill?.(run.serverKills, through);
    } finally {
      await service.kill();
    }
  }
  throw new Error('there is always a last life');
}

/** Publishes and kills task processes until the kill of the service is due, or all has gone through. */
async function work(run: Run, service: RunningService, kill: Kill | undefined): Promise<number> {
  run.publishing ??= await begin(service);
  const over = new AbortController();
  const killing = killTasks(run, service, over.signal);
  let through = 0;
  let underway = 0;
  const publishing = publishAll(run, service, over.signal, () => underway);
  try {
    for (let times = 0; times < timesInARow; ) {
      if (performance.now() > run.end) throw new Error(`not done in time: ${through} have gone through`);
      assertAlive(service);
      through = await countedBy({ ...run.publishing, url: service.url });
      underway = run.acknowledged - through;
      if (kill !== undefined && through >= kill.through) {
        await pause(kill.delayMilliseconds);
        break;
      }
      times = through === run.sent.length && (await waitingIn(service)) === 0 ? times + 1 : 0;
      await pause(pollMilliseconds);
    }
    assertAlive(service);
    if (kill !== undefined) await service.kill();
  } finally {
    over.abort();
    await killing;
    await publishing;
  }
  return through;
}

/** Makes an organization and deploys the tasks; a kill before this is done would only repeat it. */
async function begin(service: RunningService): Promise<Publishing> {
  const publishing = await newPublishing(service);
  await deployChain({ ...publishing, url: service.url });
  return publishing;
}

/** Messages that a task has not handled yet, and keys that it holds back. */
async function waitingIn({ url }: RunningService): Promise<number> {
  const lag = await figure(url, 'millrace_consumers', { kind: 'task', figure: 'lag' });
  const parked = await figure(url, 'millrace_consumers', { kind: 'task', figure: 'parked_keys' });
  return (lag ?? 0) + (parked ?? 0);
}

async function publishAll(
  run: Run,
  { url }: RunningService,
  signal: AbortSignal,
  underway: () => number,
): Promise<void> {
  const { sent, publishing } = run;
  if (publishing === undefined) return;
  while (!signal.aborted && run.acknowledged < sent.length) {
    if (underway() > mostUnderway) {
      await pause(pollMilliseconds);
      continue;
    }
    const messages = sent.slice(run.acknowledged, run.acknowledged + batchSize);
    // What is not known to have arrived is sent again, under the same ids.
    const answered = await publish(
      { ...publishing, url },
      { form: 'lines', topicName: topics.first, messages },
    );
    if (answered.kind === 'acknowledged') run.acknowledged += messages.length;
    else await pause(pollMilliseconds);
  }
}

async function killTasks(run: Run, service: RunningService, signal: AbortSignal): Promise<void> {
  const { random } = run;
  while (!signal.aborted) {
    await pause(random.between(500, 3_500), undefined, { signal }).catch(() => {});
    if (signal.aborted) return;
    const pids = taskProcessesOf(service.process.pid ?? 0);
    const pid = pids[random.between(0, Math.max(0, pids.length - 1))];
    if (pid !== undefined && killAtOnce(pid)) run.taskKills += 1;
  }
}

function assertAlive({ process: { exitCode, signalCode }, output }: RunningService): void {
  if (exitCode === null && signalCode === null) return;
  throw new Error(`the service ended by itself with ${exitCode ?? signalCode}: ${output().stderr}`);
}

async function close({ publishing }: Run, service: RunningService): Promise<Counters> {
  if (publishing === undefined) throw new Error('nothing was begun');
  const counters = await readCounters({ ...publishing, url: service.url });
  const code = await service.stop();
  if (code !== 0) throw new Error(`the service stopped with ${code}: ${service.output().stderr}`);
  return counters;
}
