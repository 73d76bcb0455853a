import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach } from 'node:test';
import type { ArchiveLimits } from './archive.ts';
import { unpack } from './unpack.ts';

export const limits: ArchiveLimits = { codeUnzippedBytes: 64 * 1024 * 1024, codeEntries: 20_000 };

/** A place for one archive and for what comes out of it, new for each test. */
export function archiveSite() {
  let directory = '';
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'millrace-archive-'));
  });
  afterEach(() => rm(directory, { recursive: true }));

  const site = {
    get archive(): string {
      return join(directory, 'code.zip');
    },
    get code(): string {
      return join(directory, 'tasks', 'code');
    },
    async put(bytes: Uint8Array): Promise<string> {
      await writeFile(site.archive, bytes);
      return site.archive;
    },
    async unpack(bytes: Uint8Array, other: Partial<ArchiveLimits> = {}) {
      return unpack(await site.put(bytes), site.code, { ...limits, ...other }, new AbortController().signal);
    },
    /** The sentence of the refusal; nothing may have been left anywhere. */
    async refusal(bytes: Uint8Array, other: Partial<ArchiveLimits> = {}): Promise<string> {
      const outcome = await site.unpack(bytes, other);
      assert.ok('refusal' in outcome, 'it was taken');
      await site.nothingLeft();
      return outcome.refusal;
    },
    /** There is nothing but the archive, here or beside it. */
    async nothingLeft(): Promise<void> {
      const left = (await readdir(directory, { recursive: true })).filter((name) => name !== 'tasks');
      assert.deepEqual(left, ['code.zip']);
    },
    /** What was unpacked: the text of each file with its mode. */
    async unpacked(): Promise<Record<string, string>> {
      const found: Record<string, string> = {};
      for (const entry of await readdir(site.code, { recursive: true, withFileTypes: true })) {
        const path = join(entry.parentPath, entry.name);
        const name = path.slice(site.code.length + 1);
        const mode = ((await stat(path)).mode & 0o7777).toString(8);
        found[name] = entry.isDirectory() ? `folder ${mode}` : `${await readFile(path, 'utf8')} ${mode}`;
      }
      return found;
    },
  };
  return site;
}
