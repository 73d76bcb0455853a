import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { within } from '../harness/service.ts';
import { eventually } from '../harness/waiting.ts';
import { parseSystemCalls, type SystemCall } from './system-calls.ts';

const run = promisify(execFile);
const installMilliseconds = 120_000;
const attachMilliseconds = 15_000;
const endMilliseconds = 15_000;

/** strace at work on a process and all of its threads. */
export interface Trace {
  /** What was recorded so far. */
  calls(): Promise<SystemCall[]>;
  /** Resolves when the traced process has ended and everything is recorded. */
  ended(): Promise<void>;
  /** Lets go of the process and deletes the record. */
  remove(): Promise<void>;
}

export interface TraceOptions {
  /** An expression of strace's option `inject`: what happens instead of the call. */
  readonly inject?: string;
}

/** Why strace cannot be used here, or undefined when it can. Installs it where that is allowed. */
export async function whyNoStrace(): Promise<string | undefined> {
  if (process.platform !== 'linux') return 'strace is a program for Linux';
  if (await isThere()) return undefined;
  if (process.getuid?.() !== 0) return 'strace is not installed, and installing it needs root';
  try {
    const command = ['install', '-y', '-o', 'DPkg::Lock::Timeout=100', 'strace'];
    await run('apt-get', command, { timeout: installMilliseconds });
  } catch {
    return 'strace is not installed, and apt-get could not install it';
  }
  return (await isThere()) ? undefined : 'strace is not installed';
}

async function isThere(): Promise<boolean> {
  return run('strace', ['--version']).then(
    () => true,
    () => false,
  );
}

/** Attaches strace to a running process, or says why it may not. */
export async function trace(pid: number, options: TraceOptions = {}): Promise<Trace | { refusal: string }> {
  const directory = await mkdtemp(join(tmpdir(), 'millrace-strace-'));
  const file = join(directory, 'trace');
  const calls = 'trace=fdatasync,fsync,pwrite64,write,writev,sendto';
  const inject = options.inject === undefined ? [] : ['-e', `inject=${options.inject}`];
  // Whole pages are shown, so that a message can be found in what is written.
  const form = ['-f', '-ttt', '-T', '-y', '-s', '16384', '-o', file];
  const child = spawn('strace', [...form, '-e', calls, ...inject, '-p', String(pid)], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const exited = once(child, 'exit');
  const said = await attached(child);
  if (said !== undefined) {
    await rm(directory, { recursive: true, force: true });
    return { refusal: `strace may not be used here: ${said}` };
  }
  const ended = async () => {
    await within(exited, endMilliseconds, 'strace did not end');
  };
  return {
    calls: async () => parseSystemCalls(await readFile(file, 'utf8')),
    ended,
    remove: async () => {
      // On this signal strace lets go of the process, which goes on.
      child.kill('SIGINT');
      await ended();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Undefined once strace says that it is attached, or what it said instead. */
async function attached(child: ChildProcess): Promise<string | undefined> {
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  return eventually('strace is attached', attachMilliseconds, () => {
    if (/attached/.test(said)) return { refusal: undefined };
    return child.exitCode === null ? undefined : { refusal: said.trim() || 'it ended' };
  }).then(({ refusal }) => refusal);
}
