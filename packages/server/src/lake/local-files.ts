import { createWriteStream } from 'node:fs';
import { mkdir, readdir, rename, rm, stat, unlink, utimes } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { ObjectStore } from '../objects/objects.ts';
import type { Clock } from '../platform/clock.ts';
import { type Random, randomId } from '../platform/random.ts';
import { objectFolder, objectKeyOf, organizationFolder } from './keys.ts';

/** A file that must be there to be read. */
export interface WantedFile {
  readonly key: string;
  readonly bytes: number;
}

/**
 * The files of the lake as files of this machine, for engines that read them themselves. An organization's
 * files lie in a folder of their own, so that an engine can be confined to it.
 */
export interface LocalFiles {
  /** The folder with the files of an organization, and with no others. */
  rootOf(organizationName: string): string;
  pathOf(fileKey: string): string;
  /** Resolves when the files are there. They stay for an hour at least, or until they are released. */
  provide(files: readonly WantedFile[], signal?: AbortSignal): Promise<{ release(): void }>;
}

/** There is no room for what was asked for. */
export class LocalFilesFullError extends Error {
  override readonly name = 'LocalFilesFullError';
}

/** Objects that are files of this machine already: the directory of the file store. */
export function storedFiles(objectsDirectory: string): LocalFiles {
  const lake = join(objectsDirectory, objectFolder);
  return {
    rootOf: (organizationName) => join(lake, organizationFolder(organizationName)),
    pathOf: (fileKey) => join(lake, fileKey),
    provide: async () => ({ release: () => {} }),
  };
}

export interface CacheOptions {
  readonly directory: string;
  readonly objects: ObjectStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly bytes: number;
}

interface CachedFile {
  readonly bytes: number;
  usedAt: number;
}

/** Until when somebody who asked for a file may still read it. */
interface Use {
  readonly until: number;
}

/** No query takes longer. */
const useMilliseconds = 3_600_000;
const downloadsAtOnce = 8;
const partial = '.partial';

/**
 * Copies of objects that are elsewhere, in a directory of a bounded size. What was used longest ago goes
 * first, and nothing goes that somebody may still be reading.
 */
export async function openFileCache(options: CacheOptions): Promise<LocalFiles> {
  const cache = new FileCache(options);
  await cache.open();
  return cache;
}

class FileCache implements LocalFiles {
  readonly #options: CacheOptions;
  /** By key. */
  readonly #files = new Map<string, CachedFile>();
  readonly #downloads = new Map<string, Promise<void>>();
  /** By key, also of files that are not there yet. */
  readonly #uses = new Map<string, Set<Use>>();
  #bytes = 0;

  constructor(options: CacheOptions) {
    this.#options = options;
  }

  /** Takes up what is there from before. */
  async open(): Promise<void> {
    const { directory } = this.#options;
    await mkdir(directory, { recursive: true });
    for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      const path = join(entry.parentPath, entry.name);
      if (!entry.name.endsWith('.parquet')) {
        await unlink(path);
        continue;
      }
      const { size, mtimeMs } = await stat(path);
      this.#note(path.slice(directory.length + 1), size, mtimeMs);
    }
  }

  rootOf(organizationName: string): string {
    return join(this.#options.directory, organizationFolder(organizationName));
  }

  pathOf(fileKey: string): string {
    return join(this.#options.directory, fileKey);
  }

  async provide(files: readonly WantedFile[], signal?: AbortSignal): Promise<{ release(): void }> {
    const now = this.#options.clock.now();
    const release = this.#use(files, { until: now + useMilliseconds });
    try {
      const missing: WantedFile[] = [];
      for (const file of files) {
        const known = this.#files.get(file.key);
        if (known === undefined) missing.push(file);
        else known.usedAt = now;
      }
      await this.#makeRoom(missing.reduce((sum, file) => sum + file.bytes, 0));
      const waiting = missing.values();
      const work = Array.from({ length: Math.min(downloadsAtOnce, missing.length) }, async () => {
        for (const file of waiting) {
          signal?.throwIfAborted();
          await this.#download(file);
        }
      });
      await Promise.all(work);
    } catch (error) {
      release();
      throw error;
    }
    return { release };
  }

  /** From here on the files stay, once they are there. */
  #use(files: readonly WantedFile[], use: Use): () => void {
    for (const { key } of files) {
      const uses = this.#uses.get(key) ?? new Set();
      this.#uses.set(key, uses.add(use));
    }
    return () => {
      for (const { key } of files) {
        const uses = this.#uses.get(key);
        uses?.delete(use);
        if (uses?.size === 0) this.#uses.delete(key);
      }
    };
  }

  #isUsed(key: string, now: number): boolean {
    const uses = this.#uses.get(key) ?? new Set();
    for (const use of uses) if (use.until <= now) uses.delete(use);
    return uses.size > 0;
  }

  async #download(file: WantedFile): Promise<void> {
    const under = this.#downloads.get(file.key);
    if (under !== undefined) return under;
    const download = this.#fetch(file).finally(() => this.#downloads.delete(file.key));
    this.#downloads.set(file.key, download);
    return download;
  }

  async #fetch({ key, bytes }: WantedFile): Promise<void> {
    const { objects, random, clock } = this.#options;
    const path = this.pathOf(key);
    const opened = await objects.get(objectKeyOf(key));
    if (opened === undefined) throw new Error(`The file ${key} of the lake is missing.`);
    await mkdir(dirname(path), { recursive: true });
    const unfinished = `${path}.${randomId(random)}${partial}`;
    try {
      await pipeline(opened.body, createWriteStream(unfinished, { flags: 'wx', mode: 0o600 }));
      await rename(unfinished, path);
      const now = clock.now() / 1000;
      await utimes(path, now, now);
    } finally {
      await rm(unfinished, { force: true });
    }
    this.#note(key, bytes, clock.now());
  }

  #note(key: string, bytes: number, usedAt: number): void {
    if (this.#files.has(key)) return;
    this.#files.set(key, { bytes, usedAt });
    this.#bytes += bytes;
  }

  async #makeRoom(needed: number): Promise<void> {
    const { bytes, clock } = this.#options;
    if (this.#bytes + needed <= bytes) return;
    const now = clock.now();
    const oldestFirst = [...this.#files].sort(([, one], [, other]) => one.usedAt - other.usedAt);
    for (const [key, file] of oldestFirst) {
      if (this.#bytes + needed <= bytes) return;
      if (this.#isUsed(key, now)) continue;
      this.#files.delete(key);
      this.#bytes -= file.bytes;
      await rm(this.pathOf(key), { force: true });
    }
    if (this.#bytes + needed > bytes) {
      throw new LocalFilesFullError('The files do not fit in the cache of the lake.');
    }
  }
}
