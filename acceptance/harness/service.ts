import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createDatabase, postgresServer, type TestDatabase } from './postgres.ts';

/**
 * Where the tests of engines run, every service gets a database of its own in PostgreSQL. It belongs to
 * the data directory, so that a restart on the same directory finds it again.
 */
const databases = new Map<string, TestDatabase>();

async function databaseOf(dataDirectory: string): Promise<Record<string, string>> {
  if (postgresServer === undefined) return {};
  const database = databases.get(dataDirectory) ?? (await createDatabase(postgresServer));
  databases.set(dataDirectory, database);
  return { MILLRACE_DATABASE_URL: database.url };
}

const entry = fileURLToPath(new URL('../../packages/server/src/main.ts', import.meta.url));
/** As `npm start` has it. */
const compileCache = fileURLToPath(new URL('../../node_modules/.cache/millrace', import.meta.url));
const startMilliseconds = 20_000;
const stopMilliseconds = 40_000;

export interface Letter {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  readonly sentAt: string;
}

/** The real service in a process of its own, on a free port. */
export interface RunningService {
  readonly url: string;
  readonly dataDirectory: string;
  readonly process: ChildProcess;
  /** What it printed so far. */
  output(): { stdout: string; stderr: string };
  /** The mails that were sent, oldest first. */
  letters(): Promise<Letter[]>;
  /** Ends it as an operator would, and answers its exit code. The data stays. */
  stop(): Promise<number | null>;
  /** Ends it at once, as a crash would. */
  kill(): Promise<void>;
  /** Ends it and deletes its data. */
  remove(): Promise<void>;
}

export interface StartOptions {
  readonly environment?: Readonly<Record<string, string>>;
  /** An existing data directory; a new one unless given. */
  readonly dataDirectory?: string;
}

/** Starts the service and waits until it says that it is ready. */
export async function startService(options: StartOptions = {}): Promise<RunningService> {
  const dataDirectory = options.dataDirectory ?? (await mkdtemp(join(tmpdir(), 'millrace-acceptance-')));
  const started = launch({
    MILLRACE_DATA_DIR: dataDirectory,
    MILLRACE_PORT: '0',
    ...(await databaseOf(dataDirectory)),
    ...options.environment,
  });
  const url = await ready(started);
  const stop = async () => {
    started.child.kill('SIGTERM');
    return within(started.exited, stopMilliseconds, 'the service did not stop');
  };
  const kill = async () => {
    started.child.kill('SIGKILL');
    await within(started.exited, stopMilliseconds, 'the service did not end');
  };
  return {
    url,
    dataDirectory,
    process: started.child,
    output: started.output,
    letters: () => readLetters(dataDirectory),
    stop,
    kill,
    remove: async () => {
      if (started.child.exitCode === null && started.child.signalCode === null) await kill();
      await databases.get(dataDirectory)?.drop();
      databases.delete(dataDirectory);
      await rm(dataDirectory, { recursive: true, force: true });
    },
  };
}

export interface Launched {
  readonly child: ChildProcess;
  readonly exited: Promise<number | null>;
  output(): { stdout: string; stderr: string };
}

/** Runs the entry of the service with exactly this environment, besides what a process needs to run at all. */
export function launch(environment: Readonly<Record<string, string>>): Launched {
  const child = spawn(process.execPath, [entry], {
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: compileCache,
      MILLRACE_LOG_LEVEL: 'warn',
      ...environment,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const exited = new Promise<number | null>((resolve) => {
    child.once('close', (code) => resolve(code));
  });
  return { child, exited, output: () => ({ stdout, stderr }) };
}

async function ready(started: Launched): Promise<string> {
  const announced = new Promise<string>((resolve, reject) => {
    const look = () => {
      const url = /^millrace ready on (\S+)$/m.exec(started.output().stdout)?.[1];
      if (url !== undefined) resolve(url);
    };
    started.child.stdout?.on('data', look);
    started.exited.then((code) => {
      reject(new Error(`the service ended with ${code} instead of being ready: ${started.output().stderr}`));
    });
  });
  try {
    return await within(announced, startMilliseconds, 'the service was not ready in time');
  } catch (error) {
    started.child.kill('SIGKILL');
    throw error;
  }
}

async function readLetters(dataDirectory: string): Promise<Letter[]> {
  const text = await readFile(join(dataDirectory, 'outbox.jsonl'), 'utf8').catch(() => '');
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

export async function within<T>(work: Promise<T>, milliseconds: number, otherwise: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(otherwise)), milliseconds);
  });
  try {
    return await Promise.race([work, limit]);
  } finally {
    clearTimeout(timer);
  }
}
