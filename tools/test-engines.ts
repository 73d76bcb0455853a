/**
 * Runs the tests that need an engine which `npm install` does not bring: starts each engine it can,
 * says which it could not and why, and stops them whatever happens.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { glob } from 'node:fs/promises';
import { findBubblewrap } from './engines/bubblewrap.ts';
import { startPostgres } from './engines/postgres.ts';
import { findShells } from './engines/shells.ts';

interface RunningEngine {
  /** What the tests find it by. */
  readonly environment: Record<string, string>;
  stop(): Promise<void>;
}

interface Engine {
  readonly name: string;
  start(): Promise<RunningEngine>;
}

interface Skipped {
  readonly name: string;
  readonly reason: string;
}

const engines: readonly Engine[] = [
  {
    name: 'bubblewrap',
    start: async () => ({
      environment: { MILLRACE_TEST_BUBBLEWRAP: await findBubblewrap() },
      stop: async () => {},
    }),
  },
  {
    name: 'zsh and fish',
    start: async () => {
      const { zsh, fish } = await findShells();
      return { environment: { MILLRACE_TEST_ZSH: zsh, MILLRACE_TEST_FISH: fish }, stop: async () => {} };
    },
  },
  {
    name: 'PostgreSQL',
    start: async () => {
      const { url, stop } = await startPostgres();
      return { environment: { MILLRACE_TEST_POSTGRES_URL: url }, stop };
    },
  },
  {
    name: 'S3',
    start: async () => {
      const { startS3 } = await import('./engines/s3.ts');
      const { endpoint, accessKeyId, secretAccessKey, region, stop } = await startS3();
      const environment = {
        MILLRACE_TEST_S3_ENDPOINT: endpoint,
        MILLRACE_TEST_S3_ACCESS_KEY: accessKeyId,
        MILLRACE_TEST_S3_SECRET_KEY: secretAccessKey,
        MILLRACE_TEST_S3_REGION: region,
      };
      return { environment, stop };
    },
  },
];

const patterns = [
  'packages/*/src/**/*.engine.test.ts',
  'acceptance/**/*.engine.test.ts',
  // What people do is tested once more with everything in PostgreSQL: the harness looks for one.
  'acceptance/{sign-up,sign-in,passwords,organizations,api-keys,access-table,topics,state,query,lake,tasks,task-deployments}.test.ts',
];

async function main(): Promise<number> {
  const running: RunningEngine[] = [];
  const skipped: Skipped[] = [];
  const interrupted = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => interrupted.abort());
  try {
    for (const engine of engines) {
      if (interrupted.signal.aborted) return 130;
      try {
        running.push(await engine.start());
        console.log(`${engine.name}: started`);
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        skipped.push({ name: engine.name, reason });
        console.log(`${engine.name}: skipped, ${reason}`);
      }
    }
    const failed = await runTests(
      Object.assign({}, ...running.map((engine) => engine.environment)),
      interrupted.signal,
    );
    for (const { name, reason } of skipped) console.log(`SKIPPED the tests of ${name}: ${reason}`);
    if (interrupted.signal.aborted) return 130;
    return failed || (skipped.length > 0 && process.env.CI === 'true') ? 1 : 0;
  } finally {
    await stopAll(running);
  }
}

/** True when a test failed. */
async function runTests(environment: Record<string, string>, interrupted: AbortSignal): Promise<boolean> {
  const files: string[] = [];
  // Files that are named are run alone.
  const wanted = process.argv.length > 2 ? process.argv.slice(2) : patterns;
  for await (const file of glob(wanted, { exclude: ['**/node_modules/**'] })) files.push(file);
  if (files.length === 0) {
    console.log('There is no test of an engine.');
    return false;
  }
  if (interrupted.aborted) return true;
  const tests: ChildProcess = spawn(
    process.execPath,
    ['--test', '--test-concurrency=3', '--test-timeout=180000', ...files.sort()],
    {
      stdio: 'inherit',
      env: { ...process.env, ...environment },
    },
  );
  interrupted.addEventListener('abort', () => tests.kill('SIGTERM'), { once: true });
  await once(tests, 'exit');
  return tests.exitCode !== 0;
}

async function stopAll(running: readonly RunningEngine[]): Promise<void> {
  for (const outcome of await Promise.allSettled(running.map((engine) => engine.stop()))) {
    if (outcome.status === 'rejected') console.error('An engine could not be stopped:', outcome.reason);
  }
}

process.exitCode = await main();
