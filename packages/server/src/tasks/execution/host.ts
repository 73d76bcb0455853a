/** What this host offers to run tasks with, found out once at start. */
import { execFile } from 'node:child_process';
import { chmod, cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { probeBubblewrap } from '../../platform/bubblewrap.ts';
import type { Random } from '../../platform/random.ts';
import { ask, findJava, findProgram, findPython, type Java, type Language } from './programs.ts';
import { type Sandbox, sandboxCommand } from './sandbox.ts';
import { Users } from './users.ts';

export interface Host {
  readonly node: string;
  readonly bootstraps: string;
  readonly python?: Language | undefined;
  readonly java?: Java | undefined;
  readonly sandbox?: Sandbox | undefined;
  /** Undefined when tasks run as the user of the service. */
  readonly users?: Users | undefined;
  readonly setpriv?: string | undefined;
  /** For files that processes see; theirs alone are in folders below it. */
  readonly directory: string;
  /** For sockets: their path must be short. */
  readonly sockets: string;
  close(): Promise<void>;
}

export interface HostOptions {
  readonly sandbox: 'auto' | 'bubblewrap' | 'none';
  readonly scratchDirectory: string;
  readonly random: Random;
}

const ownBootstraps = fileURLToPath(new URL('./bootstraps', import.meta.url));
const trialMilliseconds = 10_000;
/** The path of a socket has room for about a hundred characters. */
const longestParent = 64;

export async function openHost(options: HostOptions): Promise<Host> {
  // Processes start elsewhere, so every path has to be whole.
  const scratch = resolve(options.scratchDirectory);
  await mkdir(scratch, { recursive: true });
  const outside = await Outside.open(scratch);
  const users = Users.open(options.random);
  const [python, java] = await Promise.all([findPython(), findJava()]);
  const setpriv = findProgram('setpriv');
  const sandbox = options.sandbox === 'none' ? undefined : await trySandbox(users, setpriv);
  const short = scratch.length <= longestParent;
  const sockets = short ? await fresh(join(scratch, 's')) : await outside.make('mr-', 0o700, shortFolder());
  const shared = { python, java, setpriv, sockets, close: () => outside.close() };
  if (sandbox !== undefined || users === undefined) {
    const directory = await fresh(join(scratch, 'work'));
    return { ...shared, sandbox, users, directory, node: process.execPath, bootstraps: ownBootstraps };
  }
  // Without a sandbox another user must be able to reach everything by its own path.
  const reached = await reach(outside, users);
  if (reached !== undefined) return { ...shared, ...reached, users };
  const directory = await fresh(join(scratch, 'work'));
  return { ...shared, directory, node: process.execPath, bootstraps: ownBootstraps };
}

/** Folders that every user can usually go to; the first may be one that only root can. */
const openFolders = [tmpdir(), '/tmp', '/var/tmp'];

/** A folder with what runtimes need, found to be within reach of other users. */
async function reach(
  outside: Outside,
  users: Users,
): Promise<{ directory: string; bootstraps: string; node: string } | undefined> {
  const id = users.take();
  try {
    for (const parent of new Set(openFolders)) {
      const directory = await outside.make('millrace-tasks-', 0o711, parent).catch(() => undefined);
      if (directory === undefined) continue;
      const bootstraps = join(directory, 'bootstraps');
      await cp(ownBootstraps, bootstraps, { recursive: true });
      await makeReadable(bootstraps);
      const node = await reachNode(directory, id);
      const tried = [node, join(bootstraps, 'forwarder.mjs'), '[]', '/bin/sh', '-c', 'true'];
      if (await runs(tried, id)) return { directory, bootstraps, node };
    }
    return undefined;
  } finally {
    users.release(id);
  }
}

/** A sandbox that was seen to work, exactly as tasks will use it. */
async function trySandbox(
  users: Users | undefined,
  setpriv: string | undefined,
): Promise<Sandbox | undefined> {
  const found = await probeBubblewrap();
  // As root on the host a process would be held by the sandbox alone.
  if (found === undefined || (users !== undefined && setpriv === undefined)) return undefined;
  const help = (await ask(found.path, ['--help'])) ?? '';
  const userId = users?.take();
  try {
    for (const sealsNamespaces of help.includes('--disable-userns') ? [true, false] : [false]) {
      const sandbox: Sandbox = { path: found.path, setpriv, sealsNamespaces };
      const command = sandboxCommand({
        sandbox,
        network: 'own',
        mounts: [{ source: ownBootstraps, target: '/var/task' }],
        userId,
        command: ['/bin/sh', '-c', 'true'],
      });
      if (await runs(command)) return sandbox;
    }
    return undefined;
  } finally {
    if (userId !== undefined) users?.release(userId);
  }
}

/** The path of a Node that other users can run: a copy when this one lies where they cannot go. */
async function reachNode(directory: string, userId: number): Promise<string> {
  if (await runs([process.execPath, '--version'], userId)) return process.execPath;
  const copy = join(directory, 'node');
  await cp(process.execPath, copy);
  await chmod(copy, 0o755);
  return copy;
}

/** Whatever the umask of the service is, tasks run as other users. */
export async function makeReadable(directory: string): Promise<void> {
  await new Promise<void>((settle) => {
    execFile('/bin/chmod', ['-R', 'u=rwX,go=rX', directory], () => settle());
  });
}

function runs(command: readonly string[], userId?: number): Promise<boolean> {
  const [path = '', ...parameters] = command;
  const user = userId === undefined ? {} : { uid: userId, gid: userId };
  return new Promise((settle) => {
    try {
      const options = {
        ...user,
        cwd: '/',
        env: {},
        timeout: trialMilliseconds,
        killSignal: 'SIGKILL' as const,
      };
      execFile(path, parameters, options, (error) => settle(error === null));
    } catch {
      // A user id that this host does not allow is refused before anything runs.
      settle(false);
    }
  });
}

function shortFolder(): string {
  return tmpdir().length > longestParent ? '/tmp' : tmpdir();
}

async function fresh(directory: string): Promise<string> {
  await rm(directory, { recursive: true, force: true });
  await mkdir(directory, { recursive: true, mode: 0o700 });
  return directory;
}

/**
 * Folders outside the scratch folder. Their names are noted in it, so that what a killed service left
 * behind is removed by the next one.
 */
class Outside {
  readonly #notes: string;
  #folders: string[] = [];

  private constructor(notes: string) {
    this.#notes = notes;
  }

  static async open(scratch: string): Promise<Outside> {
    const outside = new Outside(join(scratch, 'outside.json'));
    const noted: unknown = JSON.parse(await readFile(outside.#notes, 'utf8').catch(() => '[]'));
    outside.#folders = Array.isArray(noted) ? noted.filter((name) => typeof name === 'string') : [];
    await outside.close();
    return outside;
  }

  async make(prefix: string, mode: number, parent = tmpdir()): Promise<string> {
    const folder = await mkdtemp(join(parent, prefix));
    await chmod(folder, mode);
    this.#folders.push(folder);
    await writeFile(this.#notes, JSON.stringify(this.#folders));
    return folder;
  }

  async close(): Promise<void> {
    for (const folder of this.#folders) await rm(folder, { recursive: true, force: true });
    this.#folders = [];
    await rm(this.#notes, { force: true });
  }
}
