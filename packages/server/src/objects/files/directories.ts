import { mkdir, open, realpath, rmdir } from 'node:fs/promises';
import path from 'node:path';
import { faultCode, isMissing } from './faults.ts';

/** A symbolic link stands where the store keeps a directory or an object. It is never followed. */
export class SymbolicLinkError extends Error {
  override name = 'SymbolicLinkError';
}

/** Makes the names in a directory durable. */
export async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Throws unless the path leads to its end through directories alone. The root was resolved at opening. */
export async function refuseLinks(directory: string): Promise<void> {
  if ((await realpath(directory)) !== directory) {
    throw new SymbolicLinkError('A symbolic link stands inside the object store; it is not followed.');
  }
}

const maximumRemembered = 10_000;
const maximumAttempts = 10;

/**
 * The directories under a root, each one durable before anything is put into it.
 *
 * A new directory is only safe once its parent has been synced, and another writer may see it before
 * that. So the directories whose names this process has synced are remembered, and whoever finds one
 * that is not waits for, or does, that sync. Removal forgets first and removes second; a writer asks
 * again after its rename, and so notices a directory that was replaced under it.
 */
export class DurableDirectories {
  readonly #root: string;
  readonly #durable = new Set<string>();
  readonly #pending = new Map<string, Promise<void>>();

  constructor(root: string) {
    this.#root = root;
  }

  /** Makes the directory and those above it where they are missing. */
  async ensure(directory: string): Promise<void> {
    if (directory === this.#root || this.#durable.has(directory)) return;
    const pending = this.#pending.get(directory);
    if (pending !== undefined) return pending;
    const work = this.#make(directory).finally(() => this.#pending.delete(directory));
    this.#pending.set(directory, work);
    return work;
  }

  async #make(directory: string): Promise<void> {
    const parent = path.dirname(directory);
    await this.ensure(parent);
    // Before mkdir as well as after: a link in the parent would have it made somewhere else.
    await refuseLinks(parent);
    try {
      await mkdir(directory);
    } catch (error) {
      if (faultCode(error) !== 'EEXIST') throw error;
    }
    await syncDirectory(parent);
    if (this.#durable.size >= maximumRemembered) this.#durable.clear();
    this.#durable.add(directory);
  }

  /** Does work in a directory, and does it again when a concurrent delete took the directory away as empty. */
  async whileTheyMove(directory: string, work: () => Promise<void>): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await work();
      } catch (error) {
        if (faultCode(error) !== 'ENOENT' || attempt === maximumAttempts) throw error;
        this.#forget(directory);
      }
    }
  }

  #forget(directory: string): void {
    for (let at = directory; at !== this.#root; at = path.dirname(at)) this.#durable.delete(at);
  }

  /** Removes the directory and those above it for as long as they are empty, so that listings stay short. */
  async prune(directory: string): Promise<void> {
    for (let at = directory; at !== this.#root; at = path.dirname(at)) {
      this.#durable.delete(at);
      try {
        await rmdir(at);
      } catch (error) {
        const code = faultCode(error);
        if (code === 'ENOTEMPTY' || code === 'EEXIST') return;
        if (!isMissing(error)) throw error;
      }
    }
  }
}
