import assert from 'node:assert/strict';
import { access, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { openFileStore } from '../objects/files/files.ts';
import { urlSigner } from '../objects/files/signature.ts';
import type { ObjectStore } from '../objects/objects.ts';
import { adjustableClock } from '../platform/clock.ts';
import { systemRandom } from '../platform/random.ts';
import { objectKeyOf } from './keys.ts';
import { type LocalFiles, LocalFilesFullError, openFileCache } from './local-files.ts';

const keyOf = (name: string) =>
  `organization=acme/topic=clicks/year=2026/month=11/day=15/hour=09/${name}.parquet`;
const fileBytes = 100;

describe('copies of files that are elsewhere', { timeout: 60_000 }, () => {
  let directory: string;
  let objects: ObjectStore;
  let cache: LocalFiles;
  const clock = adjustableClock(Date.UTC(2026, 10, 15));
  const open = () =>
    openFileCache({ directory: join(directory, 'cache'), objects, clock, random: systemRandom, bytes: 250 });
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'millrace-local-'));
    const signer = urlSigner(Buffer.alloc(32, 1), () => 'http://127.0.0.1');
    objects = await openFileStore({ directory: join(directory, 'objects'), signer });
    for (const name of ['a', 'b', 'c']) {
      await objects.put(objectKeyOf(keyOf(name)), Buffer.alloc(fileBytes, name));
    }
    cache = await open();
  });
  afterEach(() => rm(directory, { recursive: true }));

  const provide = (...names: string[]) =>
    cache.provide(names.map((name) => ({ key: keyOf(name), bytes: fileBytes })));
  const isThere = async (name: string) =>
    access(cache.pathOf(keyOf(name))).then(
      () => true,
      () => false,
    );

  it('are fetched when they are asked for, in the folder of their organization', async () => {
    const [first, second] = await Promise.all([provide('a', 'b'), provide('b')]);
    assert.deepEqual([await isThere('a'), await isThere('b'), await isThere('c')], [true, true, false]);
    assert.ok(cache.pathOf(keyOf('a')).startsWith(`${cache.rootOf('acme')}/topic=clicks/`));
    await objects.delete(objectKeyOf(keyOf('a')));
    await provide('a');
    first?.release();
    second?.release();
    await assert.rejects(provide('missing'), /is missing/);
  });

  it('go when there is no room, what was used longest ago first, and not while they are read', async () => {
    const first = await provide('a');
    clock.advance(1);
    const second = await provide('b');
    clock.advance(1);
    await assert.rejects(provide('c'), LocalFilesFullError);
    second.release();
    await provide('c');
    assert.deepEqual([await isThere('a'), await isThere('b'), await isThere('c')], [true, false, true]);
    first.release();
    await provide('b');
    assert.equal(await isThere('a'), false);
    clock.advance(3_600_000);
    await provide('a');
    assert.equal(await isThere('a'), true, 'what nobody released is free after an hour');
  });

  it('are still known after a restart, and what was not finished is gone', async () => {
    await provide('a');
    await writeFile(`${cache.pathOf(keyOf('b'))}.x.partial`, 'half');
    await objects.delete(objectKeyOf(keyOf('a')));
    cache = await open();
    await provide('a');
    assert.equal(await isThere('a'), true);
    await assert.rejects(access(`${cache.pathOf(keyOf('b'))}.x.partial`));
  });
});
