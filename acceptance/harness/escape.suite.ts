/**
 * What code may try from inside a task that was deployed like any other, and what must come of it: nothing
 * of the host, the service or another task is reached, and the service goes on serving all the while.
 */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, it, type TestContext } from 'node:test';
import { bombs, connector, environment, nodeProber, nodeShell, pythonShell, tracer } from './escape-code.ts';
import { newPerson } from './people.ts';
import { running } from './processes.ts';
import { PublishRate } from './publish-rate.ts';
import { type RunningService, startService } from './service.ts';
import {
  type DeployBody,
  type Deployer,
  deploy,
  deployed,
  type Files,
  invoke,
  newDeployer,
} from './tasks.ts';
import { eventually, median } from './waiting.ts';

export interface EscapeOptions {
  readonly sandbox: 'bubblewrap' | 'none';
}

const hostSecret = 'a-secret-of-the-host';
/** What publishing keeps of its rate, and how often that is looked at on a machine with other work to do. */
const keptRate = 0.8;
const looks = 5;
const lookMilliseconds = 2_000;
const isRoot = process.getuid?.() === 0;

export function escapeSuite(name: string, { sandbox }: EscapeOptions): void {
  const isSandboxed = sandbox === 'bubblewrap';

  describe(`code of a task that means harm ${name}`, { timeout: 175_000 }, () => {
    let service: RunningService;
    let deployer: Deployer;
    let other: Deployer;
    let rate: PublishRate;
    let listener: Server;
    let hiddenListener: Server;
    const hiddenName = `\0millrace-escape-${process.pid}`;

    before(async () => {
      service = await startService({
        environment: { MILLRACE_TASK_SANDBOX: sandbox, HOST_SECRET: hostSecret },
      });
      const person = await newPerson(service);
      deployer = await newDeployer(service, person);
      other = await newDeployer(service, person);
      await deployed(other, 'victim', {
        'index.mjs': 'export const handler = async () => "unharmed";',
        'private.txt': 'private to the victim',
      });
      assert.equal((await invoke(other, 'victim', {})).body.result, 'unharmed');
      listener = await listening(0);
      hiddenListener = await listening(hiddenName);
      rate = new PublishRate(deployer, 'meanwhile');
    });
    after(async () => {
      try {
        await rate?.stop();
      } finally {
        listener?.close();
        hiddenListener?.close();
        await service.remove();
      }
    });

    const pid = () => service.process.pid ?? 0;

    async function answerOf(taskId: string, event: unknown): Promise<unknown> {
      const { body, text } = await invoke(deployer, taskId, event);
      assert.ok('result' in body, text);
      return body.result;
    }

    /** Why an invocation failed. */
    async function errorOf(taskId: string, event: unknown): Promise<string> {
      const { body, text } = await invoke(deployer, taskId, event);
      assert.ok(body.error, text);
      return `${body.error.type}: ${body.error.message}`;
    }

    /** Deploys a task that needs Python; without it the test is skipped. */
    async function pythonDeployed(
      context: TestContext,
      taskId: string,
      code: Files,
      more: Partial<DeployBody> = {},
    ): Promise<boolean> {
      const { answer } = await deploy(deployer, taskId, code, { runtime: 'PYTHON3', ...more });
      if (answer.status === 200) return true;
      context.skip(`no Python here: ${answer.text}`);
      return false;
    }

    /** Deploys a task that runs scripts; undefined, and the test is skipped, where nothing could hold it. */
    async function shell(
      context: TestContext,
      taskId: string,
      more: Partial<DeployBody> = {},
    ): Promise<((script: string) => Promise<string>) | undefined> {
      if (isSandboxed) await deployed(deployer, taskId, nodeShell, more);
      else if (!isRoot) {
        context.skip('without a sandbox only a service that is root can give tasks a user of their own');
        return undefined;
      } else if (!(await pythonDeployed(context, taskId, pythonShell, more))) return undefined;
      return async (script) => String(await answerOf(taskId, { script }));
    }

    async function assertServing(): Promise<void> {
      assert.equal((await invoke(other, 'victim', {})).body.result, 'unharmed');
      await rate.during(200);
    }

    it('reads and writes with Node nothing but its own', async () => {
      await deployed(deployer, 'prober', nodeProber);
      const [victimFile] = globSync('tasks/**/private.txt', { cwd: service.dataDirectory });
      assert.ok(victimFile, 'there is a file to read');
      const event = {
        data: service.dataDirectory,
        pid: pid(),
        other: join(service.dataDirectory, victimFile ?? ''),
        passwd: readFileSync('/etc/passwd', 'utf8'),
        // Alone in its sandbox, it may signal whom it sees.
        without: isSandboxed ? ['signals everything'] : [],
      };
      const outcomes = Object.entries(Object(await answerOf('prober', event)));
      assert.ok(outcomes.length > 10);
      const refusals = /^(ERR_ACCESS_DENIED|EACCES|EPERM|ENOENT|EROFS|ESRCH|another file)$/;
      for (const [attempt, outcome] of outcomes) assert.match(String(outcome), refusals, attempt);
      await assertServing();
    });

    it('has no variable of the host', async () => {
      await deployed(deployer, 'variables', environment, { environment: { GIVEN: 'by the deploy' } });
      const variables = Object(await answerOf('variables', {}));
      assert.equal(variables.GIVEN, 'by the deploy');
      assert.doesNotMatch(JSON.stringify(variables), new RegExp(`${hostSecret}|MILLRACE_DATA_DIR`));
      assert.deepEqual(
        Object.keys(variables)
          .filter((name) => !/^(AWS_|MILLRACE_|dataspray_)/.test(name))
          .sort(),
        ['GIVEN', 'HOME', 'LAMBDA_TASK_ROOT', 'LANG', 'PATH', 'TMPDIR', 'TZ', '_HANDLER'].sort(),
      );
    });

    it('reaches no file, process or variable of others with any program', async (context) => {
      const run = await shell(context, 'programs');
      if (run === undefined) return;
      const data = service.dataDirectory;
      for (const attempt of [
        `ls ${data}`,
        `cat ${data}/millrace.db`,
        `find ${data}/tasks -name private.txt | grep .`,
        `cat /proc/${pid()}/environ`,
        `cat /proc/${pid()}/root${data}/millrace.db`,
        `ls /proc/${pid()}/cwd/`,
        `kill -9 ${pid()}`,
        'cat /etc/shadow',
        ...['mount -t tmpfs none /mnt', 'mount --bind /bin /tmp', 'chroot / true'],
        ...['mknod $TMPDIR/sda b 8 0', `nsenter -t ${pid()} -m true`],
      ]) {
        assert.match(await run(`${attempt} >/dev/null && echo DONE`), /\[\d+\]$/, attempt);
      }
      const environments = 'cat /proc/[0-9]*/environ 2>/dev/null | tr "\\0" "\\n"';
      assert.equal(await run(`${environments} | grep -c ${hostSecret}; true`), '0');
      assert.equal(await run('find /tmp /var/tmp -name private.txt 2>/dev/null; true'), '');
      const places = `${data} ${data}/tasks / /etc /usr /bin /root /var /opt /run /proc $LAMBDA_TASK_ROOT`;
      assert.equal(
        await run(`for d in ${places}; do touch $d/x 2>/dev/null && echo "wrote $d"; done; true`),
        '',
      );
      if (isSandboxed) {
        assert.match(await run('cat /etc/passwd'), /^task:[^\n]*$/, 'it has a file of its own');
        for (const place of ['/var/tmp', '/dev', '/run/millrace'])
          assert.match(await run(`touch ${place}/x`), /\[\d+\]$/, place);
        for (const attempt of ['unshare -Ur true', 'unshare -m true'])
          assert.match(await run(`${attempt} && echo DONE`), /\[\d+\]$/, attempt);
        assert.ok(Number(await run('ls -d /proc/[0-9]* | wc -l')) < 10, 'it sees its own processes only');
      }
      await assertServing();
    });

    it('reaches no port but the service, on no network', {
      skip: isSandboxed ? false : 'without a sandbox the network is open',
    }, async () => {
      await deployed(deployer, 'connector', connector);
      const address = listener.address();
      assert.ok(typeof address === 'object' && address !== null);
      const { port } = address;
      const servicePort = Number(new URL(service.url).port);
      const places = {
        loopback: { host: '127.0.0.1', port },
        'loopback by name': { host: 'localhost', port },
        'loopback in IPv6': { host: '::1', port },
        'loopback by another number': { host: '0.0.0.0', port },
        'the port of the service': { host: '127.0.0.1', port: servicePort },
        'an abstract socket': { path: hiddenName },
        'the metadata of a cloud': { host: '169.254.169.254', port: 80 },
        'a private network': { host: '10.0.0.1', port: 80 },
        'the internet': { host: '1.1.1.1', port: 443 },
      };
      const answers = Object(await answerOf('connector', { places }));
      for (const place of Object.keys(places)) assert.notEqual(answers[place], 'CONNECTED', place);
      await deployed(deployer, 'caller', {
        'index.mjs': `export const handler = async () => (await fetch(process.env.MILLRACE_ENDPOINT + '/v1/health')).status;`,
      });
      assert.equal(await answerOf('caller', {}), 200);
    });

    it('traces no process of the host', async (context) => {
      if (!isSandboxed && !isRoot)
        return context.skip('without a sandbox, only a user of its own is held back');
      if (!(await pythonDeployed(context, 'tracer', tracer))) return;
      for (const target of [pid(), process.pid])
        assert.match(String(await answerOf('tracer', { pid: target })), /^(EPERM|ESRCH|EACCES)$/);
      await assertServing();
    });

    const ends: Readonly<Record<string, RegExp>> = {
      memory: /^Runtime\.(OutOfMemory|ExitError): /,
      // With little of a processor the collector takes all the time there is.
      heap: /^(Runtime\.(OutOfMemory|ExitError)|Task\.TimedOut): /,
      disk: /^(Runtime\.(DiskFull|ExitError): |Error: ENOSPC)/,
      output: /^Runtime\.OutputTooLarge: /,
      loop: /^Task\.TimedOut: /,
      deaf: /^Task\.TimedOut: /,
    };
    const timeoutSec = 6;

    it('ends when it takes too much of anything, with all its processes', async (context) => {
      // The only thing on the command line that a test can choose.
      const memoryMb = 100 + (process.pid % 100);
      const mark = `--max-old-space-size=${memoryMb}`;
      await deployed(deployer, 'bombs', bombs, { memoryMb, timeoutSec });
      for (const [bomb, end] of Object.entries(ends)) {
        const began = performance.now();
        const error = await errorOf('bombs', { bomb });
        const took = performance.now() - began;
        context.diagnostic(`${bomb}: ${error} (${Math.round(took)} ms)`);
        assert.match(error, end, bomb);
        assert.ok(took < 15_000, `${bomb} took ${took} ms`);
        // What the disk refuses is an error of the code, and its process goes on.
        if (!error.startsWith('Error'))
          await eventually(`nothing of ${bomb} runs`, 5_000, () => (running(mark) === 0 ? true : undefined));
        await assertServing();
      }
    });

    const forkBomb = (seconds: string) =>
      `bomb() { sleep ${seconds} & bomb | bomb & }; bomb; sleep ${seconds}`;

    it('runs a fork bomb into its limit, and all of it ends', async (context) => {
      if ((await shell(context, 'forks', { timeoutSec })) === undefined) return;
      const seconds = String(71_000 + (process.pid % 9_000) + 0.5);
      const failed = errorOf('forks', { script: forkBomb(seconds) });
      await eventually('it goes off', 10_000, () => (running(`sleep ${seconds}`) > 10 ? true : undefined));
      assert.ok(running(`sleep ${seconds}`) < 400);
      await assertServing();
      assert.match(await failed, /^(Task|Runtime)\./);
      await eventually('it is gone', 5_000, () => (running(`sleep ${seconds}`) === 0 ? true : undefined));
    });

    // Other tests run beside this one, so the rate is told and not judged; publishing itself must go on.
    it('lets publishing go on, and tells what it keeps of its rate', {
      skip: isSandboxed ? false : 'without a sandbox nothing is promised about this',
    }, async (context) => {
      await deployed(deployer, 'bombs', bombs, { timeoutSec });
      await deployed(deployer, 'forks', nodeShell, { timeoutSec });
      const seconds = String(61_000 + (process.pid % 9_000) + 0.5);
      const attacks: [string, () => Promise<unknown>][] = [
        // One that only waits takes nothing from anybody.
        ...Object.keys(ends)
          .filter((bomb) => bomb !== 'deaf')
          .map((bomb): [string, () => Promise<unknown>] => [bomb, () => errorOf('bombs', { bomb })]),
        ['fork', () => errorOf('forks', { script: forkBomb(seconds) })],
      ];
      for (const [bomb, attack] of attacks) {
        const kept = await bestKept(attack);
        context.diagnostic(`${bomb}: ${kept.sentence}`);
        assert.ok(kept.part > 0, `${bomb}: ${kept.sentence}`);
      }
    });

    /** The machine has other work as well, so it is looked at again when the rate seems to be lower. */
    async function bestKept(attack: () => Promise<unknown>): Promise<{ part: number; sentence: string }> {
      let best = { part: 0, sentence: 'nothing was measured' };
      for (let look = 0; look < looks && best.part < keptRate; look += 1) {
        // Before and after, because the rest of the machine changes as well.
        const calm = await rate.during(lookMilliseconds / 2);
        const end = performance.now() + lookMilliseconds;
        const attacking = (async () => {
          while (performance.now() < end) await attack();
        })();
        const attacked = median(await rate.during(lookMilliseconds, attacking));
        const usual = median([...calm, ...(await rate.during(lookMilliseconds / 2))]);
        const part = attacked / usual;
        const percent = Math.round(part * 100);
        const sentence = `${Math.round(attacked)} of ${Math.round(usual)} messages a second, ${percent} %`;
        if (part > best.part) best = { part, sentence };
      }
      return best;
    }
  });
}

/** Listens on a free port of loopback, or on a socket by its name. */
function listening(where: number | string): Promise<Server> {
  const server = createServer((socket) => socket.end('reached'));
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    if (typeof where === 'string') server.listen(where, () => resolve(server));
    else server.listen(where, () => resolve(server));
  });
}
