import { createWriteStream } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { ObjectStore } from '../objects/objects.ts';
import { type ArchiveLimits, checkArchive, type Refusal } from './archive/archive.ts';
import { findHandler } from './archive/handler.ts';
import { unpack } from './archive/unpack.ts';
import type { VersionSettings } from './settings.ts';
import type { TaskAddress } from './task-store.ts';

/** Where an upload is kept. */
export function codeKey(organizationId: string, sessionId: string): string {
  return `code/${organizationId}/${sessionId}.zip`;
}

/** Where the folders of downloads begin; no organization has such an id. */
const downloads = '.downloads';

/**
 * The code of versions, unpacked on this node. What is here is a copy: a node that has not got it fetches
 * it from the object store. A folder is named after its upload, so code of a task that was deleted is never
 * taken for that of a new one.
 */
export class Code {
  readonly #directory: string;
  readonly #objects: ObjectStore;
  readonly #limits: ArchiveLimits;

  constructor(options: { dataDirectory: string; objects: ObjectStore; limits: ArchiveLimits }) {
    this.#directory = join(options.dataDirectory, 'tasks');
    this.#objects = options.objects;
    this.#limits = options.limits;
  }

  directoryOf({ organizationId, taskId }: TaskAddress, sessionId: string): string {
    return join(this.#directory, organizationId, taskId, sessionId);
  }

  /** The folder with the code, checked and unpacked if it is not there yet. */
  async prepare(
    address: TaskAddress,
    sessionId: string,
    { handler, runtime }: Pick<VersionSettings, 'handler' | 'runtime'>,
    signal: AbortSignal,
  ): Promise<{ directory: string } | Refusal> {
    const directory = this.directoryOf(address, sessionId);
    if (await isThere(directory)) return { directory };
    const key = codeKey(address.organizationId, sessionId);
    const uploaded = await this.#objects.get(key);
    if (uploaded === undefined)
      return { refusal: 'Nothing was uploaded to the presignedUrl of this session.' };
    const parent = join(this.#directory, downloads);
    await mkdir(parent, { recursive: true });
    const folder = await mkdtemp(join(parent, `${sessionId}-`));
    try {
      const zip = join(folder, 'code.zip');
      await pipeline(uploaded.body, createWriteStream(zip, { mode: 0o600 }), { signal });
      const archive = await checkArchive(zip, this.#limits);
      if ('refusal' in archive) return archive;
      // Before the unpacking, which may take long.
      const found = findHandler(archive, handler, runtime);
      if ('refusal' in found) return found;
      const unpacked = await unpack(zip, directory, this.#limits, signal);
      return 'refusal' in unpacked ? unpacked : { directory };
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  /** Lets go of the copy on this node. */
  async forget(address: TaskAddress, sessionId: string): Promise<void> {
    await rm(this.directoryOf(address, sessionId), { recursive: true, force: true });
  }

  /**
   * Lets go of the code of a task on this node that nobody uses any more. Who uses what is asked after looking
   * at what is there, so what is unpacked meanwhile for a deployment is not taken for old.
   */
  async forgetUnused(
    { organizationId, taskId }: TaskAddress,
    inUse: () => Promise<ReadonlySet<string>>,
  ): Promise<void> {
    const parent = join(this.#directory, organizationId, taskId);
    // A name with a dot is being unpacked at this moment.
    const there = (await names(parent)).filter((name) => !name.startsWith('.'));
    if (there.length === 0) return;
    const used = await inUse();
    for (const name of there) {
      if (!used.has(name)) await rm(join(parent, name), { recursive: true, force: true });
    }
  }

  /** Removes what an earlier run of the process left unfinished. */
  async sweep(): Promise<void> {
    await rm(join(this.#directory, downloads), { recursive: true, force: true });
    for (const organization of await names(this.#directory)) {
      for (const task of await names(join(this.#directory, organization))) {
        const parent = join(this.#directory, organization, task);
        for (const name of await names(parent)) {
          if (name.startsWith('.')) await rm(join(parent, name), { recursive: true, force: true });
        }
      }
    }
  }

  /** Deletes an upload from the object store. */
  async delete(organizationId: string, sessionId: string): Promise<void> {
    await this.#objects.delete(codeKey(organizationId, sessionId));
  }
}

async function isThere(directory: string): Promise<boolean> {
  return stat(directory).then(
    (found) => found.isDirectory(),
    () => false,
  );
}

async function names(directory: string): Promise<string[]> {
  return readdir(directory).catch(() => []);
}
