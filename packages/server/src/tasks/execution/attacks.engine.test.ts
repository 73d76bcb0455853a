/** What code may try from inside a sandbox. The way in is a Node handler that runs shell scripts. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { attacksSuite } from './attacks.suite.ts';
import { answerOf, failureOf, openSite, running, type Site, until } from './execution.fixture.ts';
import type { TaskPool } from './execution.ts';
import { treeOf } from './process-tree.ts';

const shell = {
  'index.mjs': `import { execFile } from 'node:child_process';
    export const handler = ({ script }) => new Promise((resolve) => execFile('/bin/sh', ['-c', script], { timeout: 8000, maxBuffer: 1e7 },
      (error, stdout, stderr) => resolve((stdout + stderr).trim() + (error ? ' [' + error.code + ']' : ''))));`,
};

if (process.env.MILLRACE_TEST_BUBBLEWRAP === undefined) {
  it('attacks in bubblewrap', { skip: 'there is no bubblewrap' });
} else {
  attacksSuite('in bubblewrap', { sandbox: 'bubblewrap' });
  attacksSuite('in bubblewrap without control groups', { sandbox: 'bubblewrap', cgroups: 'none' });
  escapesSuite();
}

function escapesSuite(): void {
  describe('code inside a sandbox', () => {
    let site: Site;
    let pool: TaskPool;
    let victim: TaskPool;
    const run = async (script: string): Promise<string> => String(await answerOf(pool, { script }));

    before(async () => {
      process.env.MILLRACE_TEST_HOST_SECRET = 'a-secret-of-the-host';
      site = await openSite({ sandbox: 'bubblewrap', startLimitMs: 3000 });
      await writeFile(join(site.directory, 'secret.txt'), 'a secret of the service');
      pool = await site.pool(shell);
      victim = await site.pool({
        'index.mjs': 'export const handler = async () => "unharmed"',
        'other.txt': 'private',
      });
      await answerOf(victim);
    });
    after(async () => {
      delete process.env.MILLRACE_TEST_HOST_SECRET;
      await site.close();
    });

    it('sees no file of the host, of the service or of another task', async () => {
      assert.equal(await run('cat /etc/passwd'), 'task:x:1000:1000:task:/tmp:/bin/sh');
      assert.match(await run('cat /etc/shadow'), /No such file/);
      assert.match(await run(`cat ${site.directory}/secret.txt`), /No such file/);
      assert.equal(await run('find / -xdev -name other.txt -o -name secret.txt 2>/dev/null; true'), '');
      assert.equal(await run('ls /tmp /home /root /mnt /srv /sys 2>/dev/null; true'), '/tmp:');
      assert.equal(
        await run('ls /'),
        ['bin', 'dev', 'etc', 'lib', 'lib64', 'opt', 'proc', 'run', 'sbin', 'tmp', 'usr', 'var']
          .filter((name) => name !== 'lib64' || readLink('/lib64'))
          .join('\n'),
      );
      assert.equal(
        await run('ls /var /var/task /run /run/millrace'),
        '/run:\nmillrace\n\n/run/millrace:\nservice\n\n/var:\ntask\n\n/var/task:\nindex.mjs',
      );
    });

    it('sees no process and no variable of the host', async () => {
      const pids = (await run('ls -d /proc/[0-9]* | wc -l')).trim();
      assert.ok(Number(pids) < 10, `${pids} processes`);
      assert.equal(
        await run('cat /proc/*/environ | tr "\\0" "\\n" | grep -c a-secret-of-the-host; true'),
        '0',
      );
      assert.doesNotMatch(await run('cat /proc/*/cmdline | tr "\\0" " "'), /handlers|node --test/);
      assert.doesNotMatch(
        await run('cat /proc/1/root/etc/passwd /proc/1/cwd/../etc/hostname 2>&1; true'),
        /root:/,
      );
      assert.match(await run('hostname'), /^task$/);
    });

    it('can write to its tmp and nowhere else', async () => {
      const places = '/ /var/task /usr /usr/local /etc /opt/millrace /run /run/millrace /var /dev /proc /bin';
      assert.equal(
        await run(`for d in ${places}; do touch $d/x 2>/dev/null && echo "wrote $d"; done; true`),
        '',
      );
      assert.equal(await run('(echo 1 > /proc/sys/kernel/hostname) 2>/dev/null && echo wrote; true'), '');
      assert.equal(await run('(echo x > /var/task/index.mjs) 2>/dev/null && echo wrote; true'), '');
      const filled = await run(
        'head -c 100000000 /dev/zero > /dev/shm/x; stat -c %s /dev/shm/x; rm /dev/shm/x',
      );
      assert.ok(Number(/^\d+/m.exec(filled)?.[0]) <= 16 * 1024 * 1024, filled);
      const space = await run('head -c 400000000 /dev/zero > /tmp/x; stat -c %s /tmp/x; rm /tmp/x');
      assert.ok(Number(/^\d+/m.exec(space)?.[0]) <= 256 * 1024 * 1024, space);
    });

    it('has no capability and cannot gain one, mount, or make namespaces', async () => {
      const status = await run('grep -E "^(Cap(Inh|Prm|Eff|Amb)|NoNewPrivs)" /proc/self/status');
      assert.match(
        status.replace(/\s+/g, ' '),
        /^CapInh: 0+ CapPrm: 0+ CapEff: 0+ CapAmb: 0+ NoNewPrivs: 1$/,
      );
      for (const attempt of [
        'mount -t tmpfs none /tmp',
        'mount -o remount,rw /',
        'umount /proc',
        'unshare -Ur true',
        'unshare -m true',
        'chroot / true',
        'mknod /tmp/sda b 8 0',
        'nsenter -t 1 -m true',
        'su -c true',
      ]) {
        assert.match(await run(`${attempt} && echo DONE`), /\[\d+\]$/, attempt);
      }
    });

    it('is nobody on the host when the service is root', async (test) => {
      if (process.getuid?.() !== 0) return test.skip('These tests do not run as root.');
      const mark = '71234.125';
      const slept = run(`sleep ${mark}`);
      let pid: number | undefined;
      await until('it sleeps', () => {
        pid = treeOf(process.pid).find((one) => commandOf(one) === `sleep ${mark}`);
        return pid !== undefined;
      });
      const [, user] = /^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
      assert.ok(Number(user) > 20_000, `its user is ${user}`);
      process.kill(Number(pid), 'SIGKILL');
      await slept;
    });

    it('reaches the service at its endpoint, and nothing else of any network', async () => {
      const attempt = (url: string) => `curl -sS -m 3 -o /dev/null -w "%{http_code}" ${url} 2>&1; true`;
      assert.equal(await run(attempt('$MILLRACE_ENDPOINT/here')), '200');
      for (const url of [
        `http://127.0.0.1:${site.service.port}/`,
        `http://localhost:${site.service.port}/`,
        'http://169.254.169.254/latest/meta-data/',
        'http://10.0.0.1/',
        'http://[fe80::1]/',
        'http://1.1.1.1/',
        'http://example.com/',
      ]) {
        assert.match(await run(attempt(url)), /000/, url);
      }
      assert.match(await run('cat /proc/net/dev | grep -c : '), /^1$/);
    });

    it('can end its own processes only', async () => {
      await run('kill -9 -1 2>/dev/null; true').catch(() => undefined);
      assert.equal(await answerOf(victim), 'unharmed');
      assert.equal(await run('echo again'), 'again');
    });

    it('runs a fork bomb into the limit, and it goes with its sandbox', async () => {
      const bomb = await site.pool(shell, { timeoutSec: 2 });
      const mark = '61234.5';
      const failed = failureOf(bomb, {
        script: `bomb() { sleep ${mark} & bomb | bomb & }; bomb; sleep ${mark}`,
      });
      await until('it goes off', () => running(`sleep ${mark}`) > 10);
      assert.ok(running(`sleep ${mark}`) < 200);
      assert.equal(await answerOf(victim), 'unharmed');
      assert.match(await failed, /^timeout |^crash /);
      await until('it is gone', () => running(`sleep ${mark}`) === 0, 1500);
      await bomb.close();
    });

    it('many processes together have no more memory than one', async () => {
      const eaters = await site.pool(shell, { memoryMb: 128 });
      const script =
        'for i in 1 2 3 4; do (head -c 100000000 /dev/zero | tail -c 100000000 | sleep 20) & done; wait';
      assert.match(await failureOf(eaters, { script }), /^crash Runtime\.OutOfMemory/);
      await eaters.close();
    });
  });
}

function readLink(path: string): boolean {
  try {
    return readFileSync(`${path}/ld-linux-x86-64.so.2`).byteLength > 0;
  } catch {
    return false;
  }
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1).join(' ');
  } catch {
    return '';
  }
}
