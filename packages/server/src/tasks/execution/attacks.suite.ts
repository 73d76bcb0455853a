/** What code may try, and what must come of it whatever holds its process: it hurts itself only. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { answerOf, call, failureOf, openSite, running, type Site, until } from './execution.fixture.ts';
import { keptOutput, temporarySpace } from './limits.ts';
import type { ExecutionOptions } from './open.ts';
import { findProgram } from './programs.ts';

export function attacksSuite(name: string, options: Partial<ExecutionOptions>): void {
  describe(`attacks ${name}`, () => {
    let site: Site;
    before(async () => {
      site = await openSite({ ...options, startLimitMs: 5000, idleProcessorSeconds: 0.5 });
    });
    after(() => site.close());

    it('an endless loop is ended within a second of its limit, and the next invocation runs', async () => {
      const pool = await site.pool(
        { 'index.js': 'exports.handler = (e) => { if (e.loop) for (;;); return "fine"; };' },
        { timeoutSec: 1 },
      );
      assert.equal(await answerOf(pool), 'fine');
      const startedAt = performance.now();
      assert.equal(
        await failureOf(pool, { loop: true }),
        'timeout Task.TimedOut: Task timed out after 1.00 seconds',
      );
      const took = performance.now() - startedAt;
      assert.ok(took >= 1000 && took < 2000, `it took ${took} ms`);
      assert.equal(await answerOf(pool), 'fine');
      assert.equal(pool.trouble, undefined);
      await pool.close();
    });

    it('an endless loop while loading is ended at the limit for starting', async () => {
      const version = await site.version({ 'index.js': 'for (;;);' });
      const result = await site.execution.probe(version, AbortSignal.timeout(10_000));
      assert.match(result.ok ? '' : result.error, /StartTimedOut: .* within 5 seconds/);
    });

    it('a process that ignores signals is ended all the same', async () => {
      const pool = await site.pool(
        {
          'index.js': `for (const s of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(s, () => {});
            exports.handler = () => new Promise(() => setInterval(() => {}, 10));`,
        },
        { timeoutSec: 1 },
      );
      assert.match(await failureOf(pool), /^timeout /);
      assert.equal(pool.figures().busy, 0);
      await pool.close();
    });

    it('a heap that grows without end is ended', async () => {
      const pool = await site.pool(
        {
          'index.js':
            'exports.handler = () => { const all = []; for (;;) all.push(new Array(1000).fill({})); };',
        },
        { memoryMb: 64 },
      );
      assert.match(await failureOf(pool), /^crash Runtime\.(OutOfMemory|ExitError): /);
      await pool.close();
    });

    it('memory outside the heap counts as well', async () => {
      const pool = await site.pool(
        {
          'index.js': `exports.handler = async () => { const all = [];
            for (;;) { all.push(Buffer.alloc(4 * 1024 * 1024, 1)); await new Promise((r) => setTimeout(r, 2)); } };`,
        },
        { memoryMb: 128 },
      );
      assert.equal(
        await failureOf(pool),
        'crash Runtime.OutOfMemory: The process used more than its 128 MB of memory.',
      );
      await pool.close();
    });

    it('memory that grows faster than anybody looks counts as well', async () => {
      const pool = await site.pool(
        {
          'index.js': `exports.handler = () => { const all = [];
            for (;;) all.push(Buffer.alloc(64 * 1024 * 1024, 1)); };`,
        },
        { memoryMb: 128 },
      );
      assert.equal(
        await failureOf(pool),
        'crash Runtime.OutOfMemory: The process used more than its 128 MB of memory.',
      );
      await pool.close();
    });

    it('a gigabyte of output is neither kept nor read to its end', async () => {
      const pool = await site.pool({
        'index.js': `exports.handler = () => { const line = 'x'.repeat(1023) + '\\n';
          for (let n = 0; n < 1024 * 1024; n += 1) process.stdout.write(line); };`,
      });
      site.lines.length = 0;
      assert.match(await failureOf(pool), /^crash Runtime\.OutputTooLarge: /);
      const kept = site.lines.reduce((sum, { text }) => sum + text.length, 0);
      assert.ok(kept <= keptOutput + 1000, `${kept} characters were kept`);
      assert.ok(site.lines.some(({ stream, text }) => stream === 'system' && text.includes('not kept')));
      await pool.close();
    });

    it('a line without an end does not gather in memory', async () => {
      const pool = await site.pool({
        'index.js': `exports.handler = () => { process.stderr.write('y'.repeat(900 * 1024)); return 1; };`,
      });
      site.lines.length = 0;
      assert.equal(await answerOf(pool), 1);
      assert.equal(
        site.lines.reduce((sum, { text }) => sum + text.length, 0),
        900 * 1024,
      );
      assert.ok(site.lines.every(({ text }) => text.length <= 64 * 1024));
      await pool.close();
    });

    it('a tmp can be filled only so far', async () => {
      const pool = await site.pool({
        'index.mjs': `import fs from 'node:fs'; import os from 'node:os'; import path from 'node:path';
          export const handler = async (e) => { const piece = Buffer.alloc(1024 * 1024); const written = [];
            try { for (let n = 0; n < 600; n += 1) { const f = path.join(os.tmpdir(), e.one ? 'one' : 'f' + n);
              fs.appendFileSync(f, piece); written.push(f); await new Promise((r) => setTimeout(r, e.one ? 0 : 4)); } }
            catch (error) { return [written.length, error.code]; } return [written.length]; };`,
      });
      for (const event of [{ one: true }, {}]) {
        const result = await call(pool, event);
        if ('value' in result) {
          assert.ok(Array.isArray(result.value), JSON.stringify(result));
          const [written, code] = result.value;
          assert.ok(written <= temporarySpace / (1024 * 1024), `${written} MiB fitted`);
          assert.match(String(code), /^(ENOSPC|EFBIG)$/);
        } else {
          assert.match(`${result.kind} ${result.error.type}`, /^crash Runtime\.(DiskFull|ExitError)$/);
        }
      }
      await pool.close();
    });

    it('what a process started ends with it, also what left its group and its parent', async () => {
      const mark = `${90_000 + process.pid}.${Math.floor(performance.now())}`;
      const bootstrap = `#!/bin/sh
        trap '' TERM INT HUP
        sleep ${mark} & (sleep ${mark} &)
        setsid sh -c '(setsid sleep ${mark} &) ; sleep ${mark}' &
        sleep ${mark}`;
      const version = await site.version({ bootstrap }, { runtime: 'PROVIDED', handler: 'any' });
      const probe = site.execution.probe(version, AbortSignal.timeout(20_000));
      await until('all of them run', () => running(`sleep ${mark}`) >= 5);
      assert.match(await probe.then((result) => (result.ok ? '' : result.error)), /StartTimedOut/);
      await until('none of them runs', () => running(`sleep ${mark}`) === 0, 1000);
    });

    it('a service that is killed takes its tasks with it', async (test) => {
      if (findProgram('setpriv') === undefined) return test.skip('The host has no setpriv.');
      // The only thing on the command line that a test can choose.
      const memoryMb = 1000 + (process.pid % 1000);
      const fixture = fileURLToPath(new URL('./abandoned.fixture.ts', import.meta.url));
      const folder = await mkdtemp(join(tmpdir(), 'mr-left-'));
      await chmod(folder, 0o711);
      const service = spawn(process.execPath, [fixture, options.sandbox ?? 'none', String(memoryMb)], {
        stdio: ['ignore', 'pipe', 'inherit'],
        env: { ...process.env, TMPDIR: folder },
      });
      await once(service.stdout, 'data', { signal: AbortSignal.timeout(20_000) });
      const marks = `--max-old-space-size=${memoryMb}`;
      assert.ok(running(marks) > 0);
      service.kill('SIGKILL');
      await until('nothing of it runs', () => running(marks) === 0, 2000);
      await rm(folder, { recursive: true });
    });

    it('an invocation that is given up ends its process', async () => {
      const pool = await site.pool({ 'index.js': 'exports.handler = () => { for (;;); };' });
      const controller = new AbortController();
      const result = call(pool, {}, { signal: controller.signal });
      await until('it runs', () => pool.figures().busy === 1);
      controller.abort();
      const ended = await result;
      assert.ok('error' in ended);
      assert.deepEqual([ended.kind, ended.error.type], ['unavailable', 'Task.Aborted']);
      await pool.close();
    });

    it('a process that writes nonsense where the answers go is ended', async () => {
      const pool = await site.pool({
        'index.mjs': `import fs from 'node:fs';
          export const handler = () => { fs.writeSync(4, Buffer.alloc(64, 255)); return new Promise((r) => setTimeout(r, 5000)); };`,
      });
      assert.equal(await failureOf(pool), 'crash Runtime.Malformed: The process sent what is no frame.');
      await pool.close();
    });

    it('a process that is busy with nothing to do is ended in the end', async () => {
      const pool = await site.pool({
        'index.js': `exports.handler = () => { setImmediate(() => { for (;;); }); return 'fine'; };`,
      });
      assert.equal(await answerOf(pool), 'fine');
      await until('it is ended', () => pool.figures().processes === 0, 60_000);
      assert.match(pool.trouble ?? '', /BusyWhileIdle/);
      await pool.close();
    });
  });
}
