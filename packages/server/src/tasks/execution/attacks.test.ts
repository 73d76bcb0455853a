import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { attacksSuite } from './attacks.suite.ts';
import { answerOf, failureOf, openSite, running, type Site, until } from './execution.fixture.ts';

attacksSuite('without a sandbox', { sandbox: 'none' });

describe('Node code without a sandbox', () => {
  let site: Site;
  before(async () => {
    site = await openSite();
    await writeFile(join(site.directory, 'secret.txt'), 'a secret of the service');
  });
  after(() => site.close());

  it('cannot read or write outside its code and tmp, start programs or threads, or load native code', async () => {
    const pool = await site.pool({
      'index.mjs': `import fs from 'node:fs'; import os from 'node:os'; import { spawnSync, fork } from 'node:child_process';
        import { Worker } from 'node:worker_threads'; import { createRequire } from 'node:module'; import path from 'node:path';
        const tries = {
          passwd: () => fs.readFileSync('/etc/passwd'), list: () => fs.readdirSync('/'),
          proc: () => fs.readFileSync('/proc/self/environ'), parent: () => fs.readFileSync('/proc/' + process.ppid + '/environ'),
          secret: (e) => fs.readFileSync(e.secret), write: (e) => fs.writeFileSync(e.secret, 'x'),
          code: () => fs.writeFileSync(path.join(process.env.LAMBDA_TASK_ROOT, 'new.js'), 'x'),
          climb: () => fs.readFileSync(path.join(os.tmpdir(), '..', '..', '..', 'etc', 'passwd')),
          link: () => { fs.symlinkSync('/etc/passwd', path.join(os.tmpdir(), 'l')); return fs.readFileSync(path.join(os.tmpdir(), 'l')); },
          spawn: () => { const r = spawnSync('/bin/true'); if (r.error) throw r.error; }, fork: () => fork('index.mjs'),
          worker: () => new Worker('0', { eval: true }), binding: () => process.binding('fs'),
          native: () => process.dlopen({ exports: {} }, '/usr/lib/x.node'),
          kill: () => process.kill(process.ppid, 'SIGKILL'), raw: () => process._kill(process.ppid, 9),
          group: () => process.kill(0, 'SIGKILL'), all: () => process.kill(-1, 'SIGKILL'),
          debug: () => process._debugProcess(process.ppid), priority: () => os.setPriority(process.ppid, 19),
        };
        export const handler = async (e) => Object.fromEntries(Object.entries(tries).map(([name, attempt]) => {
          try { attempt(e); return [name, 'done']; } catch (error) { return [name, error.code ?? error.message]; } }));`,
    });
    const seen = await answerOf(pool, { secret: join(site.directory, 'secret.txt') });
    assert.ok(typeof seen === 'object' && seen !== null);
    for (const [attempt, outcome] of Object.entries(seen)) {
      assert.match(String(outcome), /^ERR_(ACCESS_DENIED|DLOPEN_DISABLED)$/, `${attempt}: ${outcome}`);
    }
    await pool.close();
  });

  it('cannot loosen its limits with variables of its own', async () => {
    const pool = await site.pool(
      { 'index.js': 'exports.handler = () => require("node:fs").readFileSync("/etc/passwd", "utf8");' },
      { environment: { NODE_OPTIONS: '--allow-fs-read=*', LD_PRELOAD: '/nowhere.so' } },
    );
    assert.match(await failureOf(pool), /^error Error: Access to this API has been restricted/);
    await pool.close();
  });

  it('runs as a user of its own when the service is root', async (test) => {
    if (process.getuid?.() !== 0) return test.skip('These tests do not run as root.');
    const files = { 'index.js': 'exports.handler = () => [process.getuid(), process.getgroups()];' };
    const [one, two] = [await site.pool(files), await site.pool(files)];
    const users = [await answerOf(one), await answerOf(two)];
    for (const user of users) assert.match(JSON.stringify(user), /^\[\d{5,},\[(\d{5,})?\]\]$/);
    assert.notDeepEqual(users[0], users[1]);
    await Promise.all([one.close(), two.close()]);
  });

  it('a fork bomb under a user of its own runs into the limit and is swept away', async (test) => {
    if (process.getuid?.() !== 0) return test.skip('Only root can give a process a user of its own.');
    const bootstrap = '#!/bin/sh\nbomb() { bomb | bomb & }\nbomb\nsleep 81234.5\n';
    const version = await site.version({ bootstrap }, { runtime: 'PROVIDED', handler: 'any' });
    const controller = new AbortController();
    const probe = site.execution.probe(version, controller.signal);
    await until('it goes off', () => running('sleep 81234.5') > 0);
    controller.abort();
    assert.equal((await probe).ok, false);
    await until('it is gone', () => running('sleep 81234.5') === 0, 2000);
  });
});
