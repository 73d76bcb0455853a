import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { systemClock } from '../../platform/clock.ts';
import { readObject } from '../objects.suite.ts';
import { StorageFullError } from '../objects.ts';
import { SymbolicLinkError } from './directories.ts';
import { type FileStore, openFileStore } from './files.ts';
import { listen } from './listening.fixture.ts';
import { urlSigner } from './signature.ts';

const run = promisify(execFile);
let baseUrl = 'http://localhost';
const signer = urlSigner(Buffer.alloc(32), () => baseUrl);

describe('a directory of objects', { timeout: 60_000 }, () => {
  let parent: string;
  let directory: string;
  let store: FileStore;

  beforeEach(async () => {
    parent = await mkdtemp(path.join(tmpdir(), 'millrace-disk-'));
    directory = path.join(parent, 'store');
    store = await openFileStore({ directory, signer });
  });
  afterEach(() => rm(parent, { recursive: true, force: true }));

  const temporaryFiles = () => readdir(path.join(directory, 'temporary'));

  test('keeps each object in a file of its own name', async () => {
    await store.put('acme/year=2026/part-0.parquet', Buffer.from('x'));
    const file = path.join(store.directory, 'acme/year=2026/part-0.parquet');
    assert.equal(store.pathOf('acme/year=2026/part-0.parquet'), file);
    assert.equal(await readFile(file, 'utf8'), 'x');
    assert.deepEqual(await temporaryFiles(), []);
  });

  test('follows no symbolic link, whether to a file or to a directory', async () => {
    const outside = path.join(parent, 'outside');
    await mkdir(path.join(outside, 'sub'), { recursive: true });
    await writeFile(path.join(outside, 'secret'), 'secret');
    await writeFile(path.join(outside, 'sub', 'secret'), 'secret');
    await symlink(path.join(outside, 'secret'), path.join(store.directory, 'file-link'));
    await symlink(outside, path.join(store.directory, 'directory-link'));
    await symlink(path.join(outside, 'not-there'), path.join(store.directory, 'dangling'));
    await store.put('real/object', Buffer.from('x'));
    await symlink(path.join(store.directory, 'real'), path.join(store.directory, 'inner-link'));

    for (const key of [
      'file-link',
      'directory-link/secret',
      'directory-link/sub/secret',
      'inner-link/object',
    ]) {
      await assert.rejects(store.get(key), SymbolicLinkError, key);
      await assert.rejects(store.head(key), SymbolicLinkError, key);
    }
    for (const key of [
      'directory-link/new',
      'directory-link/secret',
      'directory-link/deep/er/new',
      'dangling/new',
    ]) {
      await assert.rejects(store.put(key, Buffer.from('evil')), key);
      await assert.rejects(store.create(key, Buffer.from('evil'), { contentLength: 4 }), key);
    }
    await assert.rejects(store.delete('directory-link/secret'), SymbolicLinkError);
    await store.delete('file-link');
    const { objects } = await store.list('', { limit: 100 });
    assert.deepEqual(
      objects.map((object) => object.key),
      ['real/object'],
    );
    assert.deepEqual((await store.list('directory-link/', { limit: 100 })).objects, []);
    assert.equal(await readFile(path.join(outside, 'secret'), 'utf8'), 'secret');
    assert.deepEqual((await readdir(outside)).sort(), ['secret', 'sub']);
    assert.deepEqual(await readdir(path.join(outside, 'sub')), ['secret']);
    assert.deepEqual(await temporaryFiles(), []);

    await store.put('file-link', Buffer.from('mine'));
    assert.equal(await readObject(store, 'file-link'), 'mine');
    assert.equal(await readFile(path.join(outside, 'secret'), 'utf8'), 'secret');
  });

  test('refuses to open where a link stands in place of its own directories', async () => {
    const planted = path.join(parent, 'planted');
    await mkdir(planted);
    await symlink(parent, path.join(planted, 'objects'));
    await assert.rejects(openFileStore({ directory: planted, signer }), SymbolicLinkError);
  });

  test('may itself be reached by a link', async () => {
    const alias = path.join(parent, 'alias');
    await symlink(directory, alias);
    await store.put('a/b', Buffer.from('x'));
    assert.equal(await readObject(await openFileStore({ directory: alias, signer }), 'a/b'), 'x');
  });

  test('takes a pipe for nothing, without waiting for it', async () => {
    await run('mkfifo', [path.join(store.directory, 'pipe')]);
    assert.equal(await store.get('pipe'), undefined);
    assert.deepEqual((await store.list('', { limit: 10 })).objects, []);
  });

  test('is as it was after the process was killed in the middle of a write', async () => {
    await store.put('crash/object', Buffer.from('old'));
    const fixture = path.join(import.meta.dirname, 'crash.fixture.ts');
    const child = spawn(process.execPath, [fixture, directory, 'crash/object'], {
      stdio: ['pipe', 'ignore', 'inherit'],
    });
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.stdin.write('x'.repeat(100_000));
    const deadline = Date.now() + 10_000;
    while ((await temporaryFiles()).length === 0) {
      assert.ok(Date.now() < deadline, 'the write begins');
      await pause(10);
    }
    child.kill('SIGKILL');
    await ended;
    const reopened = await openFileStore({ directory, signer });
    assert.deepEqual(await temporaryFiles(), []);
    assert.equal(await readObject(reopened, 'crash/object'), 'old');
  });

  test('takes back the directories that a delete leaves empty', async () => {
    await store.put('a/b/c/d', Buffer.from('x'));
    await store.put('a/e', Buffer.from('x'));
    await store.delete('a/b/c/d');
    assert.deepEqual(await readdir(path.join(store.directory, 'a')), ['e']);
    await store.delete('a/e');
    assert.deepEqual(await readdir(store.directory), []);
    await store.put('a/b/c/d', Buffer.from('again'));
    assert.equal(await readObject(store, 'a/b/c/d'), 'again');
  });

  test('loses no write to a delete that empties the same directory', async () => {
    for (let round = 0; round < 20; round += 1) {
      const keep = Array.from({ length: 4 }, (_, index) => `race/${round}/deep/keep-${index}`);
      const drop = Array.from({ length: 4 }, (_, index) => `race/${round}/deep/drop-${index}`);
      await Promise.all(drop.map((key) => store.put(key, Buffer.from('x'))));
      await Promise.all([
        ...drop.map((key) => store.delete(key)),
        ...keep.map((key) => store.put(key, Buffer.from(key))),
      ]);
      for (const key of keep) assert.equal(await readObject(store, key), key);
    }
  });

  test('opens no directory that lies before the page', async () => {
    const long = new Date('2001-01-01T00:00:00Z');
    for (const name of ['a', 'b', 'c', 'd']) await store.put(`pages/${name}/x`, Buffer.from('x'));
    const directories = ['a', 'b', 'c', 'd'].map((name) => path.join(store.directory, 'pages', name));
    for (const each of directories) await utimes(each, long, long);
    const { objects, next } = await store.list('pages/', { after: 'pages/b/y', limit: 1 });
    assert.deepEqual(
      objects.map((object) => object.key),
      ['pages/c/x'],
    );
    assert.equal(next, 'pages/c/x');
    // Reading a directory sets the time of its last access, where the file system keeps that.
    const opened = await Promise.all(
      directories.map(async (each) => (await stat(each)).atimeMs !== long.getTime()),
    );
    assert.equal(opened[0], false);
  });

  test('says that the disk is full, keeps nothing of the write, and works again by itself', async (context) => {
    const mounted = path.join(parent, 'small');
    await mkdir(mounted);
    try {
      await run('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', mounted]);
    } catch {
      context.skip('a small file system cannot be mounted here: that needs root');
      return;
    }
    try {
      const small = await openFileStore({ directory: mounted, signer });
      const { app, url } = await listen({ store: small, signer, clock: systemClock });
      baseUrl = url;
      await small.put('old', Buffer.from('old'));
      const tooMuch = () => Readable.from([Buffer.alloc(600_000), Buffer.alloc(600_000)]);
      await assert.rejects(small.put('old', tooMuch()), StorageFullError);
      await assert.rejects(small.create('new', tooMuch(), { contentLength: 1_200_000 }), StorageFullError);
      const signed = await small.signedPut('upload', {
        expiresAt: Date.now() + 60_000,
        contentLength: 4_000_000,
      });
      const response = await fetch(signed.url, { method: 'PUT', body: Buffer.alloc(4_000_000) });
      assert.equal(response.status, 503);
      assert.deepEqual(await readdir(path.join(mounted, 'temporary')), []);
      assert.equal(await readObject(small, 'old'), 'old');
      assert.equal(await small.head('upload'), undefined);
      await small.put('new', Buffer.alloc(600_000));
      await app.close();
    } finally {
      await run('umount', ['-l', mounted]);
    }
  });
});
