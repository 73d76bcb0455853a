import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import type { Block, Page } from './markdown.ts';
import { within } from './service.ts';

/**
 * The pages whose commands are run, in the order in which they build on each other. What is in one list is
 * pasted into one shell.
 */
export const sessions = {
  curl: [
    'README.md',
    'docs/topics-and-publishing.md',
    'docs/state.md',
    'docs/identity.md',
    'docs/organizations.md',
    'docs/errors.md',
    'docs/operating.md',
  ],
  commandLine: [
    'docs/getting-started.md',
    'docs/lake-and-schemas.md',
    'docs/sql.md',
    'docs/tasks.md',
    'docs/client.md',
  ],
} as const;

/** Blocks that a reader runs: commands, and programs that are saved under the name in their first line. */
const runnableLanguages = new Set(['sh', 'ts']);

export function isRunnable({ language }: Block): boolean {
  return runnableLanguages.has(language);
}

/**
 * What is to become of a block that can be run. The comment above it, `<!-- run: ... -->`, says so:
 *
 *   none                run by the test
 *   ci. Why.            run by the checks of every change
 *   with program. Why.  run where the host has that program
 *   no. Why.            not run
 */
export type Fate =
  | { readonly kind: 'run' | 'checks' }
  | { readonly kind: 'skipped'; readonly reason: string }
  | { readonly kind: 'unclear' };

export function fateOf({ directive }: Block): Fate {
  if (directive === undefined) return { kind: 'run' };
  const [, word, program, reason = ''] =
    /^(ci|no|with (\w+))\. ([A-Z][\s\S]+\.)$/.exec(directive.trim()) ?? [];
  if (word === undefined) return { kind: 'unclear' };
  if (word === 'ci') return { kind: 'checks' };
  if (program === undefined) return { kind: 'skipped', reason };
  return hasProgram(program) ? { kind: 'run' } : { kind: 'skipped', reason: `no ${program} here. ${reason}` };
}

function hasProgram(name: string): boolean {
  const folders = (process.env.PATH ?? '').split(delimiter);
  return folders.some((folder) => existsSync(join(folder, name)));
}

export interface RunBlock {
  readonly block: Block;
  readonly output: string;
  /** The output that the page shows after it. */
  readonly expected: string | undefined;
  readonly milliseconds: number;
}

export interface Shell {
  readonly folder: string;
  /** Where the service is: stands in for what the pages say. */
  readonly url: string;
  readonly milliseconds: number;
}

/** Pastes the commands of pages into one shell, one block after the other. */
export async function runPages(pages: readonly Page[], shell: Shell): Promise<RunBlock[]> {
  const runnable = pages.flatMap((page) => {
    const blocks = page.blocks.map((block, index) => ({ block, expected: answerAfter(page, index) }));
    return blocks.filter(({ block }) => isRunnable(block) && fateOf(block).kind === 'run');
  });
  const session = runnable.map(
    ({ block }) => `${commandsOf(block, shell)}\nprintf '\\0%s\\0' "$EPOCHREALTIME"\n`,
  );
  const began = Date.now();
  const { code, stdout, stderr } = await bash(session.join(''), shell);
  const parts = stdout.replaceAll('\r', '').split('\0');
  let before = began;
  const done = runnable.slice(0, Math.floor(parts.length / 2)).map(({ block, expected }, index) => {
    const ended = Number(parts[2 * index + 1]) * 1000;
    const milliseconds = ended - before;
    before = ended;
    return { block, expected, output: parts[2 * index]?.trim() ?? '', milliseconds };
  });
  if (code !== 0) {
    const last = runnable[done.length]?.block.place ?? 'the last block';
    throw new Error(`${last} fails with ${code}: ${parts.at(-1)}${stderr}`);
  }
  return done;
}

/** What is pasted for a block: the commands themselves, or saving a program and running it. */
function commandsOf(block: Block, shell: Shell): string {
  if (block.language === 'sh') return block.text.replace(/^URL=.*$/m, `URL=${shell.url}`);
  const name = programName(block);
  return `cat > ${name} <<'END OF PROGRAM'\n${block.text}END OF PROGRAM\nnode ${name}`;
}

/** The file that a program is saved as, from its first line, such as `// publish.ts`. */
export function programName({ text, place }: Block): string {
  const [, name] = /^\/\/ ([\w-]+\.ts)\n/.exec(text) ?? [];
  if (name === undefined) throw new Error(`${place} does not name its file in its first line`);
  return name;
}

/** The block of output that follows a block of commands. */
function answerAfter(page: Page, index: number): string | undefined {
  const next = page.blocks[index + 1];
  return next?.language === 'text' ? next.text.trim() : undefined;
}

/** Matches exactly this text, with anything for each `...`. */
export function pattern(text: string): RegExp {
  const literal = text.split('...').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${literal.join('[\\s\\S]*')}$`);
}

/** What a new shell has: not what a test runner adds. Nothing of whoever runs the tests is read or written. */
export function plainEnvironment(home: string): Record<string, string> {
  const { PATH = '' } = process.env;
  return {
    PATH: `${dirname(process.execPath)}:${PATH}`,
    HOME: home,
    npm_config_update_notifier: 'false',
  };
}

async function bash(script: string, { folder, url, milliseconds }: Shell): Promise<Ended> {
  const child = spawn('bash', ['-eo', 'pipefail', '-c', script], {
    cwd: folder,
    // The command line looks here; on a laptop the service is where it looks by itself.
    env: { ...plainEnvironment(folder), MILLRACE_ENDPOINT: url },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  try {
    return await within(collect(child), milliseconds, 'the commands of the pages did not end');
  } finally {
    if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  }
}

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export function collect(child: ChildProcess): Promise<Ended> {
  let stdout = '';
  let stderr = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, stdout, stderr }));
  });
}
