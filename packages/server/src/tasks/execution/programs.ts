/** Finds the programs that runtimes need on this host. */
import { execFile } from 'node:child_process';
import { accessSync, constants, realpathSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import type { Runtime } from '../version.ts';

/** A language found on the host. */
export interface Language {
  /** Absolute, without links. */
  readonly path: string;
  /** Folders that it cannot do without. */
  readonly folders: readonly string[];
}

export interface Java extends Language {
  readonly compiler: string;
}

export type RuntimeKind = 'node' | 'python' | 'java' | 'provided';

export function kindOf(runtime: Runtime): RuntimeKind {
  if (runtime === 'JAVA21') return 'java';
  if (runtime === 'PYTHON3') return 'python';
  return runtime === 'PROVIDED' ? 'provided' : 'node';
}

const askMilliseconds = 10_000;
const oldestJava = 17;

/** Folders of the system come first: those under a home folder are out of reach for other users. */
export function findProgram(name: string, search = process.env.PATH ?? ''): string | undefined {
  const folders = ['/usr/bin', '/bin', '/usr/local/bin', ...search.split(delimiter)];
  return folders
    .filter((folder) => folder.startsWith('/'))
    .map((folder) => join(folder, name))
    .find(isExecutable);
}

export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

export async function findPython(): Promise<Language | undefined> {
  const found = findProgram('python3');
  if (found === undefined) return undefined;
  // What is found may be a shim that only knows the way to the real one.
  const told = await ask(found, ['-c', 'import sys; print(sys.executable); print(sys.base_prefix)']);
  const [executable, prefix] = told?.trim().split('\n') ?? [];
  if (executable === undefined || prefix === undefined || !isExecutable(executable)) return undefined;
  return { path: realpathSync(executable), folders: [prefix] };
}

export async function findJava(): Promise<Java | undefined> {
  const found = findProgram('javac');
  if (found === undefined) return undefined;
  const compiler = realpathSync(found);
  const home = dirname(dirname(compiler));
  const path = join(home, 'bin', 'java');
  // Every JDK says its version in a file; starting one just to ask takes half a second.
  const release = await readFile(join(home, 'release'), 'utf8').catch(() => '');
  const major = Number(/^JAVA_VERSION="(\d+)/m.exec(release)?.[1]);
  if (!isExecutable(path) || !(major >= oldestJava)) return undefined;
  return { path, compiler, folders: [home, ...settingsOf(home)] };
}

/** Debian keeps the settings of Java in /etc and links to them. */
function settingsOf(home: string): string[] {
  try {
    const file = realpathSync(join(home, 'conf', 'security', 'java.security'));
    const [, top, folder] = file.split('/');
    return top === 'etc' && folder !== undefined ? [`/etc/${folder}`] : [];
  } catch {
    return [];
  }
}

export function ask(path: string, parameters: readonly string[]): Promise<string | undefined> {
  return new Promise((resolve) => {
    execFile(path, parameters, { timeout: askMilliseconds, killSignal: 'SIGKILL' }, (error, stdout) =>
      resolve(error === null ? stdout : undefined),
    );
  });
}
