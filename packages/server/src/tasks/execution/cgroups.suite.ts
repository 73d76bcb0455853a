/** What control groups add to the limits of a task, on a host that lets the service make any. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readlinkSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { silentLog } from '../../platform/log.ts';
import { findGroups } from './cgroup-folders.ts';
import { Cgroups } from './cgroups.ts';
import { answerOf, failureOf, openSite, running, type Site, until } from './execution.fixture.ts';
import { killTree } from './kill.ts';
import { mebibyte } from './limits.ts';
import type { ExecutionOptions } from './open.ts';
import { foldersOf, TaskGroup } from './task-group.ts';

const provided = { runtime: 'PROVIDED', handler: 'any' } as const;
const forever = 'exports.handler = () => "fine";';
const starts = 10;
const mostStarts = 30;

export function cgroupsSuite(name: string, sandbox: ExecutionOptions['sandbox']): void {
  describe(`control groups ${name}`, () => {
    let site: Site;
    let reason: string | undefined;
    before(async () => {
      site = await openSite({ sandbox, startLimitMs: 10_000 });
      if (!site.execution.isolation.includes('cgroups')) reason = 'This host lets us make no control groups.';
    });
    after(() => site.close());

    const grouped = (title: string, body: (test: TestContext) => Promise<void>): void => {
      it(title, (test) => (reason === undefined ? body(test) : test.skip(reason)));
    };

    grouped('are named in the line about the isolation, unless they are not wanted', async () => {
      assert.match(site.execution.isolation, /, memory and processes limited by cgroups/);
      const without = await openSite({ sandbox, cgroups: 'none' });
      assert.doesNotMatch(without.execution.isolation, /cgroups/);
      await without.close();
    });

    grouped('end a task whose child takes memory faster than anybody looks', async () => {
      const bootstrap = '#!/bin/sh\ndd if=/dev/zero of=/dev/null bs=500M count=20\nexit 3\n';
      const version = await site.version({ bootstrap }, { ...provided, memoryMb: 64 });
      const result = await site.execution.probe(version, AbortSignal.timeout(20_000));
      assert.match(
        result.ok ? '' : result.error,
        /^Runtime\.OutOfMemory: The process used more than its 64 MB of memory\./,
      );
    });

    grouped('count the memory of what left its session and its parent', async () => {
      const bootstrap = `#!/bin/sh
        (setsid sh -c 'dd if=/dev/zero of=/dev/null bs=500M count=20' &)
        sleep 20`;
      const version = await site.version({ bootstrap }, { ...provided, memoryMb: 64 });
      const result = await site.execution.probe(version, AbortSignal.timeout(20_000));
      assert.match(result.ok ? '' : result.error, /^Runtime\.OutOfMemory: /);
    });

    grouped('do not end a task for what it may have', async () => {
      const pool = await site.pool(
        {
          'index.mjs': `import fs from 'node:fs'; import os from 'node:os'; import path from 'node:path';
            const piece = Buffer.alloc(1024 * 1024, 1); const kept = [];
            export const handler = () => {
              for (let n = 0; n < 100; n += 1) kept.push(Buffer.alloc(1024 * 1024, 1));
              for (let n = 0; n < 200; n += 1) fs.appendFileSync(path.join(os.tmpdir(), 'big'), piece);
              return kept.length; };`,
        },
        { memoryMb: 128 },
      );
      assert.equal(await answerOf(pool), 100);
      await pool.close();
    });

    grouped('hold a fork bomb, and the next task runs', async () => {
      const mark = `${50_000 + process.pid}.5`;
      const bootstrap = `#!/bin/sh
        bomb() { sleep ${mark} & bomb | bomb & }
        setsid sh -c 'sleep ${mark}' &
        bomb; sleep ${mark}`;
      const version = await site.version({ bootstrap }, provided);
      const controller = new AbortController();
      const probe = site.execution.probe(version, controller.signal);
      await until('it goes off', () => running(`sleep ${mark}`) > 20, 10_000);
      assert.ok(running(`sleep ${mark}`) < 150, `${running(`sleep ${mark}`)} processes`);
      const victim = await site.pool({ 'index.js': forever });
      assert.equal(await answerOf(victim), 'fine');
      controller.abort();
      assert.equal((await probe).ok, false);
      await until('it is gone', () => running(`sleep ${mark}`) === 0, 1000);
      await victim.close();
    });

    grouped('are gone when their processes are', async () => {
      const pools = await Promise.all([1, 2, 3].map(() => site.pool({ 'index.js': forever })));
      await Promise.all(pools.map((pool) => answerOf(pool)));
      assert.ok(ownFolders().length > 0);
      const crash = await site.pool({ 'index.js': 'exports.handler = () => process.abort();' });
      assert.match(await failureOf(crash), /^crash /);
      await Promise.all([...pools, crash].map((pool) => pool.close()));
      await until('no folder is left', () => ownFolders().length === 0);
    });

    grouped('do not make a start slower', async (test) => {
      const without = await openSite({ sandbox, cgroups: 'none' });
      const fastest = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
      const difference = (): number => (fastest[0] ?? 0) - (fastest[1] ?? 0);
      // On a machine that does other things as well the fastest start is found only after a while.
      for (let start = 0; start < mostStarts && (start < starts || difference() > 5); start += 1) {
        for (const [at, place] of [site, without].entries()) {
          const pool = await place.pool({ 'index.js': forever });
          const startedAt = performance.now();
          await answerOf(pool);
          fastest[at] = Math.min(fastest[at] ?? 0, performance.now() - startedAt);
          await pool.close();
        }
      }
      await without.close();
      const text = fastest.map((time) => `${time.toFixed(1)} ms`).join(' with groups, without ');
      test.diagnostic(text);
      // Five are what it may be; the rest is for tests that run beside this one.
      assert.ok(difference() < 30, text);
    });

    grouped('of a service that was killed are removed by the next one', async () => {
      const fixture = fileURLToPath(new URL('./abandoned.fixture.ts', import.meta.url));
      const folder = await mkdtemp(join(tmpdir(), 'mr-left-'));
      const service = spawn(process.execPath, [fixture, sandbox, '200'], {
        stdio: ['ignore', 'pipe', 'inherit'],
        env: { ...process.env, TMPDIR: folder },
      });
      await once(service.stdout, 'data', { signal: AbortSignal.timeout(20_000) });
      assert.ok(foldersOfProcess(service.pid).length > 0);
      service.kill('SIGKILL');
      await once(service, 'exit');
      const next = await openSite({ sandbox });
      assert.deepEqual(foldersOfProcess(service.pid), []);
      await next.close();
      await rm(folder, { recursive: true, force: true });
    });
  });
}

/** What needs no execution around it. */
export function groupSuite(): void {
  describe('a control group', () => {
    it('ends what forked away, opened a session and forgot its environment', async (test) => {
      const cgroups = await Cgroups.open(silentLog);
      if (cgroups === undefined) return test.skip('This host lets us make no control groups.');
      const group = cgroups.make({ memoryBytes: 64 * mebibyte, processes: 32 });
      const mark = `${60_000 + process.pid}.25`;
      const script = `(env -i setsid sh -c '(setsid sleep ${mark} &); sleep ${mark}' &); sleep ${mark}`;
      const child = spawn('/bin/sh', ['-c', group.enterLines + script], { stdio: 'ignore', detached: true });
      await until('all of it runs', () => running(`sleep ${mark}`) >= 4);
      const target = { exited: false, sandboxed: false, userId: undefined, marker: undefined };
      await killTree({ pid: Number(child.pid), ...target, group });
      assert.equal(running(`sleep ${mark}`), 0);
      await cgroups.remove(group);
      await cgroups.close();
      assert.deepEqual(ownFolders(), []);
    });

    it('that a killed service left is ended with what runs in it', async (test) => {
      const cgroups = await Cgroups.open(silentLog);
      const parents = findGroups();
      if (cgroups === undefined || parents === undefined)
        return test.skip('This host lets us make no control groups.');
      const gone = spawn('/bin/true');
      await once(gone, 'exit');
      const name = `millrace-${/\d+/.exec(readlinkSync('/proc/self/ns/pid'))}-${gone.pid}-1-1`;
      for (const folder of foldersOf(parents)) mkdirSync(join(folder, name, '1'), { recursive: true });
      const group = TaskGroup.at(foldersBelow(parents, name), '1');
      const script = `${group.enterLines}echo in; exec sleep 1000`;
      const left = spawn('/bin/sh', ['-c', script], { stdio: ['ignore', 'pipe', 'ignore'] });
      const ended = once(left, 'exit', { signal: AbortSignal.timeout(5000) });
      await once(left.stdout, 'data', { signal: AbortSignal.timeout(5000) });
      const next = await Cgroups.open(silentLog);
      assert.deepEqual(await ended, [null, 'SIGKILL']);
      for (const folder of foldersOf(parents)) assert.equal(existsSync(join(folder, name)), false);
      await next?.close();
      await cgroups.close();
    });
  });
}

function foldersBelow(parents: NonNullable<ReturnType<typeof findGroups>>, name: string) {
  const { kind, memory, processes } = parents;
  const below = (folder: string): string => join(folder, name);
  return {
    kind,
    memory: below(memory),
    processes: below(processes),
  };
}

function ownFolders(): string[] {
  return foldersOfProcess(process.pid);
}

function foldersOfProcess(pid: number | undefined): string[] {
  const parents = findGroups();
  if (parents === undefined) return [];
  return [...foldersOf(parents)].flatMap((folder) =>
    readdirSync(folder).filter((name) => new RegExp(`^millrace-\\d+-${pid}-`).test(name)),
  );
}
