/**
 * The crash test: writers publish while the service is killed again and again, and in the end everything
 * that was acknowledged must be there.
 *
 * The seed decides what is sent and when the kill is due. What the machine does in between is not in its
 * hands, so a seed repeats a run closely but not to the letter.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { launch, type RunningService, startService, within } from '../harness/service.ts';
import { lakeCaughtUp, lakeDisagreements, readLake } from './lake.ts';
import type { LedgerCounts } from './ledger.ts';
import { defineStore, disagreements, readStores } from './projection.ts';
import { type SeededRandom, seededRandom } from './random.ts';
import { damages, readLog } from './read-log.ts';
import { newPublishing, newWriters, type Publishing, topicNames } from './site.ts';
import type { Writer } from './writer.ts';

export interface CrashOptions {
  readonly rounds: number;
  readonly seed: number;
  readonly writers: number;
  /** Settings of the service, besides those of all rounds. */
  readonly environment?: Readonly<Record<string, string>>;
  /** How long the service serves at most before it is killed; a quarter of a second unless set. */
  readonly servingMilliseconds?: number;
  /** Hears of each round. */
  onRound?(round: number): void;
}

export interface CrashOutcome extends LedgerCounts {
  readonly seed: number;
  readonly rounds: number;
  /** How many of the messages of unknown fate were in the log. */
  readonly unknownThere: number;
  /** How many files the tables of the lake have in the end. */
  readonly lakeFiles: number;
  /** What must not be; empty when all is well. */
  readonly violations: readonly string[];
  /** Kept when something is wrong. */
  readonly dataDirectory: string | undefined;
}

/** What goes through all rounds. */
interface Run {
  readonly dataDirectory: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly publishing: Publishing;
  readonly writers: readonly Writer[];
  /** How long the last whole start took. */
  startMilliseconds: number;
}

/** When the service is killed. */
type Kill =
  /** At a part of the time that a start takes. */
  | { readonly when: 'starting'; readonly part: number }
  | { readonly when: 'serving'; readonly milliseconds: number }
  | { readonly when: 'acknowledged'; readonly count: number };

const exitMilliseconds = 10_000;
const usualStartMilliseconds = 1_000;
const usualServingMilliseconds = 250;
const settleRequests = 10;

export async function runCrashRounds(options: CrashOptions): Promise<CrashOutcome> {
  const dataDirectory = await mkdtemp(join(tmpdir(), 'millrace-crash-'));
  const random = seededRandom(options.seed);
  const { writers, ledger } = newWriters(options.writers, random.fork());
  const environment = { MILLRACE_LAKE_FILE_SECONDS: '1', ...options.environment };
  let unknownThere = 0;
  let lakeFiles = 0;
  let violations: string[];
  try {
    const first = await startService({ dataDirectory, environment });
    const publishing = await newPublishing(first);
    for (const topicName of topicNames) await defineStore({ ...publishing, url: first.url }, topicName);
    await first.kill();
    const startMilliseconds = usualStartMilliseconds;
    const run: Run = { dataDirectory, environment, publishing, writers, startMilliseconds };
    for (let round = 1; round <= options.rounds; round += 1) {
      await crash(run, nextKill(random, options.servingMilliseconds ?? usualServingMilliseconds));
      options.onRound?.(round);
    }
    const held = await settle(run);
    const stored = await readLog(dataDirectory);
    unknownThere = ledger.unknownThere(stored);
    const lake = await readLake(dataDirectory);
    lakeFiles = lake.files;
    violations = [
      ...ledger.violations(stored),
      ...disagreements(held, stored),
      ...lakeDisagreements(lake.rows, stored),
      ...(await damages(dataDirectory)),
    ];
  } catch (error) {
    violations = [error instanceof Error ? (error.stack ?? error.message) : String(error)];
  }
  const isWell = violations.length === 0;
  if (isWell) await rm(dataDirectory, { recursive: true, force: true });
  return {
    ...ledger.counts(),
    seed: options.seed,
    rounds: options.rounds,
    unknownThere,
    lakeFiles,
    violations,
    dataDirectory: isWell ? undefined : dataDirectory,
  };
}

export function summaryOf(outcome: CrashOutcome): string {
  const { rounds, acknowledged, unknown, unknownThere, duplicates, refused, seed, lakeFiles, violations } =
    outcome;
  return [
    `${rounds} rounds`,
    `${acknowledged} acknowledged`,
    `${unknown} unknown (${unknownThere} of them there)`,
    `${refused} refused`,
    `${duplicates} duplicates`,
    `${lakeFiles} files in the lake`,
    `seed ${seed}`,
    violations.length === 0 ? 'nothing lost' : `${violations.length} violations`,
  ].join(', ');
}

function nextKill(random: SeededRandom, longestServing: number): Kill {
  const kind = random.next();
  if (kind < 0.4) return { when: 'starting', part: random.next() };
  if (kind < 0.68) return { when: 'serving', milliseconds: random.between(0, longestServing) };
  return { when: 'acknowledged', count: random.between(1, 60) };
}

async function crash(run: Run, kill: Kill): Promise<void> {
  const { dataDirectory, environment, writers } = run;
  if (kill.when === 'starting') return crashWhileStarting(run, kill.part * run.startMilliseconds);
  const began = performance.now();
  const service = await startService({ dataDirectory, environment });
  run.startMilliseconds = performance.now() - began;
  const account = { ...run.publishing, url: service.url };
  let isKilled = false;
  let acknowledgements = 0;
  const end = () => {
    isKilled = true;
    service.process.kill('SIGKILL');
  };
  const onAcknowledged = () => {
    acknowledgements += 1;
    if (kill.when === 'acknowledged' && acknowledgements === kill.count) end();
  };
  try {
    const writing = writers.map((writer) =>
      writer.write(account, { isOver: () => isKilled, onAcknowledged }),
    );
    if (kill.when === 'serving') {
      await pause(kill.milliseconds);
      end();
    }
    await Promise.all(writing);
    if (!isKilled) throw new Error(`the service broke connections by itself: ${service.output().stderr}`);
  } finally {
    await service.kill();
  }
  assertKilled(service);
}

function assertKilled(service: RunningService): void {
  const { exitCode } = service.process;
  if (exitCode !== null) {
    throw new Error(`the service ended by itself with ${exitCode}: ${service.output().stderr}`);
  }
}

async function crashWhileStarting({ dataDirectory, environment }: Run, milliseconds: number): Promise<void> {
  const started = launch({ MILLRACE_DATA_DIR: dataDirectory, MILLRACE_PORT: '0', ...environment });
  await Promise.race([pause(milliseconds), started.exited]);
  started.child.kill('SIGKILL');
  const code = await within(started.exited, exitMilliseconds, 'the service did not end');
  if (code !== null) throw new Error(`the service refused to start: ${started.output().stderr}`);
}

/** Lets the writers have their answers and write a little more, then stops the service as one should. */
async function settle({
  dataDirectory,
  environment,
  publishing,
  writers,
}: Run): Promise<Map<string, number>> {
  const service = await startService({ dataDirectory, environment });
  let code: number | null;
  let held: Map<string, number>;
  try {
    const account = { ...publishing, url: service.url };
    await Promise.all(
      writers.map(async (writer) => {
        for (let left = settleRequests; left > 0 || writer.isPending; left -= 1) {
          if (left < -settleRequests) throw new Error('a writer does not get an answer');
          await writer.writeOnce(account);
        }
      }),
    );
    await lakeCaughtUp(account.url);
    held = await readStores(account);
  } finally {
    code = await service.stop();
  }
  if (code !== 0) throw new Error(`the service stopped with ${code}: ${service.output().stderr}`);
  return held;
}
