import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { type DataDirectory, openDataDirectory } from './data-directory.ts';

const fixture = join(import.meta.dirname, 'data-directory.fixture.ts');

describe('a data directory', { timeout: 30_000 }, () => {
  let parent: string;
  let path: string;
  const children: ChildProcess[] = [];

  beforeEach(async () => {
    parent = await mkdtemp(join(tmpdir(), 'millrace-directory-'));
    path = join(parent, 'deep', 'data');
  });
  afterEach(async () => {
    await Promise.all(children.splice(0).map(kill));
    await rm(parent, { recursive: true });
  });

  /** Another process that tries to take the directory, and what it said. */
  async function otherProcess(): Promise<{ child: ChildProcess; said: string }> {
    const child = spawn(process.execPath, ['--expose-gc', fixture, path], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    children.push(child);
    const lines = createInterface(child.stdout);
    const [said] = await once(lines, 'line');
    return { child, said: String(said) };
  }

  async function kill(child: ChildProcess): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  }

  async function take(): Promise<DataDirectory> {
    const opened = await openDataDirectory(path);
    if ('refusal' in opened) assert.fail(opened.refusal);
    return opened;
  }

  async function refusal(wanted = path): Promise<string> {
    const opened = await openDataDirectory(wanted);
    assert.ok('refusal' in opened);
    return opened.refusal;
  }

  test('is made for its owner alone and names the process that has it', async () => {
    const directory = await take();
    assert.equal(directory.path, path);
    assert.equal((await stat(path)).mode & 0o777, 0o700);
    assert.equal(await readFile(join(path, 'millrace.pid'), 'utf8'), `${process.pid}\n`);
    await directory.release();
    await directory.release();
  });

  test('is refused to a second process, by the pid of the first, and given to it after a release', async () => {
    const directory = await take();
    const second = await otherProcess();
    assert.match(second.said, new RegExp(`${path} is in use by the process ${process.pid}\\.`));
    await directory.release();
    assert.equal((await otherProcess()).said, 'taken');
  });

  test('is refused while another process has it, and free once that was killed with -9', async () => {
    const { child, said } = await otherProcess();
    assert.equal(said, 'taken');
    assert.match(await refusal(), new RegExp(`in use by the process ${child.pid}\\.`));
    await kill(child);
    const directory = await take();
    assert.equal(await readFile(join(path, 'millrace.pid'), 'utf8'), `${process.pid}\n`);
    await directory.release();
  });

  test('is refused to the same process a second time', async () => {
    const directory = await take();
    assert.match(await refusal(), /in use by the process/);
    await rm(join(path, 'millrace.pid'));
    assert.match(await refusal(), /in use by another process/);
    assert.match((await otherProcess()).said, /in use by another process/);
    await directory.release();
    await (await take()).release();
  });

  test('is refused in a sentence when it is a file or below one', async () => {
    const file = join(parent, 'file');
    await writeFile(file, '');
    assert.equal(await refusal(file), `The data directory ${file} is not a directory.`);
    const below = join(file, 'data');
    assert.equal(await refusal(below), `The data directory ${below} is not a directory.`);
  });

  test('is refused in a sentence when this user may not write there', async () => {
    await mkdir(path, { recursive: true });
    await chmod(path, 0o555);
    await chmod(parent, 0o755);
    // Root may write everywhere, so become nobody for a moment.
    const isRoot = process.geteuid?.() === 0;
    if (isRoot) process.seteuid?.(65_534);
    try {
      const expected = (directory: string) =>
        `The data directory ${directory} cannot be written by this user.`;
      assert.equal(await refusal(), expected(path));
      assert.equal(await refusal(join(path, 'below')), expected(join(path, 'below')));
    } finally {
      if (isRoot) process.seteuid?.(0);
      await chmod(path, 0o755);
    }
  });
});
