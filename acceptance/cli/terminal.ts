import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';
import { within } from '../harness/service.ts';
import { eventually } from '../harness/waiting.ts';

export const program = fileURLToPath(new URL('../../packages/cli/bin/millrace.mjs', import.meta.url));
const usualMilliseconds = 30_000;

/** Why there are no terminals here, for tests that need one; `script` is part of every Debian. */
export const noTerminal: string | undefined =
  spawnSync('script', ['-qec', 'true', '/dev/null'], { input: '' }).status === 0
    ? undefined
    : 'script of util-linux is not here, so there is no pseudo terminal';

export interface Place {
  readonly environment: Readonly<Record<string, string>>;
  readonly directory: string;
}

/** A person's own config folder and working folder, without anything of this machine. */
export async function newPlace(
  variables: Readonly<Record<string, string>>,
): Promise<Place & { remove(): Promise<void> }> {
  const directory = await mkdtemp(join(tmpdir(), 'millrace-cli-'));
  const environment = {
    PATH: `${dirname(process.execPath)}:${process.env.PATH ?? ''}`,
    HOME: directory,
    XDG_CONFIG_HOME: join(directory, 'config'),
    TERM: 'xterm',
    LANG: 'C.UTF-8',
    ...variables,
  };
  return { environment, directory, remove: () => rm(directory, { recursive: true, force: true }) };
}

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  output(): { stdout: string; stderr: string };
}

/** Starts the command without a terminal. */
export function start(place: Place, words: readonly string[]): Running {
  const child = spawn(process.execPath, [program, ...words], {
    cwd: place.directory,
    env: { ...place.environment },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  child.stdin?.on('error', () => {});
  const ended = new Promise<Ended>((resolve) => {
    child.once('close', (code) => resolve({ code, stdout, stderr }));
  });
  return { child, ended, output: () => ({ stdout, stderr }) };
}

/** Runs the command without a terminal to its end. */
export async function run(place: Place, words: readonly string[], input = ''): Promise<Ended> {
  const running = start(place, words);
  running.child.stdin?.end(input);
  try {
    return await within(running.ended, 60_000, `millrace ${words.join(' ')} did not end`);
  } finally {
    running.child.kill('SIGKILL');
  }
}

/** The command in a pseudo terminal, as a person uses it. */
export class Terminal {
  readonly #child: ChildProcess;
  readonly #ended: Promise<number | null>;
  #raw = '';
  #seen = 0;

  constructor(place: Place, words: readonly string[], setup = '') {
    const quoted = [process.execPath, program, ...words].map((word) => `'${word.replaceAll("'", "'\\''")}'`);
    const line = `stty cols 100 rows 30; ${setup} exec ${quoted.join(' ')}`;
    this.#child = spawn('script', ['-qfec', line, '/dev/null'], {
      cwd: place.directory,
      env: { ...place.environment, SHELL: '/bin/sh' },
      stdio: ['pipe', 'pipe', 'inherit'],
      // A group of its own, so that all of it can be ended.
      detached: true,
    });
    this.#child.stdin?.on('error', () => {});
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#raw += text;
    });
    this.#ended = new Promise((resolve) => this.#child.once('close', (code) => resolve(code)));
  }

  /** Everything that was shown, with what steers the terminal. */
  get raw(): string {
    return this.#raw;
  }

  /** Everything that was shown, as text. */
  get text(): string {
    return stripVTControlCharacters(this.#raw);
  }

  /** Waits until something is shown that was not waited for before. */
  async shows(pattern: RegExp, milliseconds = usualMilliseconds): Promise<RegExpExecArray> {
    try {
      return await eventually(`the terminal shows ${pattern}`, milliseconds, () => {
        const found = pattern.exec(this.text.slice(this.#seen));
        if (found === null) return undefined;
        this.#seen += found.index + found[0].length;
        return found;
      });
    } catch (error) {
      throw new Error(`${error instanceof Error ? error.message : error}; it shows:\n${this.text}`);
    }
  }

  type(text: string): void {
    this.#child.stdin?.write(text);
  }

  enter(text: string): void {
    this.type(`${text}\r`);
  }

  interrupt(): void {
    this.type('\u0003');
  }

  /** Waits for the end and answers the exit code. */
  async end(milliseconds = usualMilliseconds): Promise<number | null> {
    try {
      return await within(this.#ended, milliseconds, `the command did not end; it shows:\n${this.text}`);
    } finally {
      await this.close();
    }
  }

  async close(): Promise<void> {
    this.#child.stdin?.end();
    if (this.#child.exitCode === null && this.#child.pid !== undefined) {
      try {
        process.kill(-this.#child.pid, 'SIGKILL');
      } catch {
        // It has just ended.
      }
    }
    await this.#ended;
  }
}
