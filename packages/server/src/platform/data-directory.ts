import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

/** A data directory that belongs to this process until it is released or the process ends. */
export interface DataDirectory {
  /** Absolute. */
  readonly path: string;
  release(): Promise<void>;
}

/**
 * The locks this process holds. A connection that nothing refers to would be closed by the garbage
 * collector, and its lock with it.
 */
const held = new Set<DatabaseSync>();

/**
 * Makes the directory when it is missing and takes it for this process, or says in a sentence why not.
 *
 * Node has no file lock, but SQLite takes one: an exclusive transaction on `millrace.lock` holds a lock of
 * the kernel, which lets go of it when the process ends, however it ends, so it is never left behind. The
 * file `millrace.pid` is only there to name the owner in the refusal. No other code may open the lock
 * file, because closing any descriptor of it would release the lock.
 */
export async function openDataDirectory(path: string): Promise<DataDirectory | { refusal: string }> {
  const directory = resolve(path);
  const pidFile = join(directory, 'millrace.pid');
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    if (!(await stat(directory)).isDirectory()) return { refusal: sentence(directory, 'ENOTDIR') };
  } catch (error) {
    return { refusal: sentence(directory, codeOf(error)) };
  }
  const lock = takeLock(join(directory, 'millrace.lock'));
  if (lock === 'taken') return { refusal: await inUse(directory, pidFile) };
  if (lock === 'unusable') return { refusal: sentence(directory, 'EACCES') };
  try {
    await writeFile(pidFile, `${process.pid}\n`, { mode: 0o600 });
  } catch (error) {
    lock.close();
    return { refusal: sentence(directory, codeOf(error)) };
  }
  held.add(lock);
  return {
    path: directory,
    release: async () => {
      if (!held.delete(lock)) return;
      await rm(pidFile, { force: true });
      lock.close();
    },
  };
}

/** Synchronous, but only once, before anything is served, and it does not wait. */
function takeLock(file: string): DatabaseSync | 'taken' | 'unusable' {
  let lock: DatabaseSync | undefined;
  try {
    lock = new DatabaseSync(file, { timeout: 0 });
    lock.exec('pragma locking_mode = exclusive; begin exclusive');
    return lock;
  } catch (error) {
    lock?.close();
    const isBusy = error instanceof Error && 'errcode' in error && error.errcode === 5;
    return isBusy ? 'taken' : 'unusable';
  }
}

async function inUse(directory: string, pidFile: string): Promise<string> {
  const pid = await readFile(pidFile, 'utf8').then(
    (text) => /^\d+/.exec(text)?.[0],
    () => undefined,
  );
  const owner = pid === undefined ? 'another process' : `the process ${pid}`;
  return `The data directory ${directory} is in use by ${owner}. Stop it, or choose another directory.`;
}

function sentence(directory: string, code: string): string {
  switch (code) {
    case 'EEXIST':
    case 'ENOTDIR':
      return `The data directory ${directory} is not a directory.`;
    case 'EACCES':
    case 'EPERM':
      return `The data directory ${directory} cannot be written by this user.`;
    case 'EROFS':
      return `The data directory ${directory} is on a file system that is read-only.`;
    case 'ENOSPC':
    case 'EDQUOT':
      return `There is no space left for the data directory ${directory}.`;
    default:
      return `The data directory ${directory} cannot be used (${code}).`;
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error);
}
