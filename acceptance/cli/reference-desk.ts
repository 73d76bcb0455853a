import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
// The reference is derived from this table, and so are the lines that are run here.
import { commands } from '../../packages/cli/src/commands/index.ts';
import { within } from '../harness/service.ts';
import { eventually } from '../harness/waiting.ts';
import { type Ended, newPlace, type Place, program, run, Terminal } from './terminal.ts';

/** The tour takes the longest, most of all where others test at the same time. */
const usualMilliseconds = 150_000;
const known = new Set(commands.flatMap(({ examples }) => examples));
const executed = new Set<string>();

/** The examples of the reference that nothing has executed yet. */
export function unexecuted(): string[] {
  return [...known].filter((example) => !executed.has(example));
}

/** Where somebody follows the reference: a home with `millrace` on the path. */
export type Desk = Awaited<ReturnType<typeof newPlace>>;

export async function newDesk(variables: Readonly<Record<string, string>>): Promise<Desk> {
  const place = await newPlace(variables);
  const programs = join(place.directory, 'bin');
  await mkdir(programs);
  const script = `#!/bin/sh\nexec '${process.execPath}' '${program}' "$@"\n`;
  await writeFile(join(programs, 'millrace'), script, { mode: 0o755 });
  const environment = { ...place.environment, PATH: `${programs}:${place.environment.PATH}` };
  return { ...place, environment };
}

/** What stands in an example for something else, and that. */
export type Replaced = Readonly<Record<string, string>>;

/** The line that a reader types: the example, with what only the reader can know. */
function lineOf(example: string, replaced: Replaced): string {
  assert.ok(known.has(example), `"${example}" is no example of the reference`);
  executed.add(example);
  let line = example;
  for (const [written, meant] of Object.entries(replaced)) {
    assert.ok(line.includes(written), `"${example}" has no ${written}`);
    line = line.replaceAll(written, meant);
  }
  return line;
}

/** An example that runs in bash, in a group of its own as in a terminal. */
export class RunningExample {
  readonly ended: Promise<Ended>;
  readonly #line: string;
  readonly #child: ChildProcess;
  #stdout = '';
  #stderr = '';

  constructor(place: Place, line: string) {
    this.#line = line;
    this.#child = spawn('bash', ['--norc', '-c', `set -o pipefail\n${line}`], {
      cwd: place.directory,
      env: { ...place.environment },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#stdout += text;
    });
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text;
    });
    this.ended = new Promise((resolve) => {
      this.#child.once('close', (code) => {
        resolve({ code, stdout: this.#stdout, stderr: this.#stderr });
      });
    });
  }

  /** What it has printed so far as data. */
  get stdout(): string {
    return this.#stdout;
  }

  /** Waits until it has printed something, and answers that. */
  shows(pattern: RegExp, milliseconds = usualMilliseconds): Promise<RegExpExecArray> {
    return eventually(`\`${this.#line}\` prints ${pattern}`, milliseconds, () => {
      const text = `${this.#stdout}${this.#stderr}`;
      const found = pattern.exec(text);
      assert.ok(found !== null || this.#child.exitCode === null, `\`${this.#line}\` has ended: ${text}`);
      return found ?? undefined;
    });
  }

  /** Ctrl-C; answers the exit code. */
  async interrupt(): Promise<number | null> {
    this.#signal('SIGINT');
    return (await this.end()).code;
  }

  async end(milliseconds = usualMilliseconds): Promise<Ended> {
    try {
      return await within(this.ended, milliseconds, `\`${this.#line}\` does not end`);
    } catch (error) {
      throw new Error(`${error instanceof Error ? error.message : error}; it printed:\n${this.#stderr}`);
    } finally {
      await this.close();
    }
  }

  /** Ends it whatever it does: first in order, since it may have a service of its own. */
  async close(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#signal('SIGTERM');
    await within(this.ended, usualMilliseconds, '').catch(() => this.#signal('SIGKILL'));
  }

  #signal(name: NodeJS.Signals): void {
    if (this.#child.pid === undefined) return;
    try {
      process.kill(-this.#child.pid, name);
    } catch {
      // It has just ended.
    }
  }
}

/** Starts an example that does not end by itself. */
export function begin(place: Place, example: string, replaced: Replaced = {}): RunningExample {
  return new RunningExample(place, lineOf(example, replaced));
}

export interface Expected {
  readonly replaced?: Replaced;
  /** What its output has; `stderr` is where sentences for people are. */
  readonly stdout?: RegExp;
  readonly stderr?: RegExp;
  /** What the same shell does afterwards. */
  readonly afterwards?: string;
}

/** Runs an example as it stands to its end, which is a good one, and looks at what it prints. Answers its data. */
export async function example(place: Place, text: string, expected: Expected = {}): Promise<string> {
  const line = lineOf(text, expected.replaced ?? {});
  const running = new RunningExample(
    place,
    expected.afterwards === undefined ? line : `${line} &&\n${expected.afterwards}`,
  );
  const { code, stdout, stderr } = await running.end();
  const shown = `\`${line}\`\n${stdout}${stderr}`;
  assert.equal(code, 0, shown);
  if (expected.stdout !== undefined) assert.match(stdout, expected.stdout, shown);
  if (expected.stderr !== undefined) assert.match(stderr, expected.stderr, shown);
  return stdout;
}

/** Runs an example in a terminal, where it can ask. */
export function atTerminal(place: Place, text: string): Terminal {
  const [name, ...words] = lineOf(text, {}).split(' ');
  assert.equal(name, 'millrace');
  return new Terminal(place, words);
}

/** The values that a command lists as JSON, for what an example needs to know. */
export async function listed(place: Place, ...words: string[]) {
  const { code, stdout, stderr } = await run(place, [...words, '--json']);
  assert.equal(code, 0, stderr);
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}
