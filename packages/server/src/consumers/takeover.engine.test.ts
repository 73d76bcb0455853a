import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createPostgresSite, serverUrl } from '../database/postgres/testing.fixture.ts';
import { systemClock } from '../platform/clock.ts';
import { silentLog } from '../platform/log.ts';
import { systemRandom } from '../platform/random.ts';
import { consumer, until } from './consumers.fixture.ts';
import { ConsumerRunner } from './runner.ts';
import { sameEverywhere } from './same-log.fixture.ts';

const script = fileURLToPath(new URL('node.fixture.ts', import.meta.url));

test('with the usual times, the shares of a stopped and of a killed process move within ten seconds', {
  timeout: 120_000,
}, async (context) => {
  if (serverUrl === undefined) throw new Error('MILLRACE_TEST_POSTGRES_URL is not set');
  const site = await createPostgresSite(serverUrl);
  const database = await site.open();
  const runner = new ConsumerRunner({
    database,
    events: await sameEverywhere(),
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
    nodeId: 'here',
  });
  const children: ChildProcess[] = [];
  const startChild = (nodeId: string) => {
    const child = spawn(process.execPath, [script, site.url, nodeId], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    children.push(child);
    return child;
  };
  const shares = async () => (await runner.figures.read())[0]?.shares ?? 0;
  const takeover = async (signal: NodeJS.Signals, child: ChildProcess) => {
    child.kill(signal);
    const at = performance.now();
    await until(`taken over after ${signal}`, async () => (await shares()) === 16, 30_000);
    const seconds = (performance.now() - at) / 1000;
    context.diagnostic(`after ${signal}: ${seconds.toFixed(1)} s`);
    return seconds;
  };
  try {
    runner.register(consumer(async () => []));
    await until('all here', async () => (await shares()) === 16);
    const child = startChild('there');
    await until('half each', async () => (await shares()) === 8, 30_000);
    assert.ok((await takeover('SIGSTOP', child)) < 10);
    child.kill('SIGCONT');
    await until('half each again', async () => (await shares()) === 8, 30_000);
    assert.ok((await takeover('SIGKILL', child)) < 10);
    const second = startChild('elsewhere');
    await until('half each once more', async () => (await shares()) === 8, 30_000);
    assert.ok((await takeover('SIGTERM', second)) < 2, 'one that closes leaves at once');
  } finally {
    for (const child of children) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    await runner.close();
    await site.remove();
  }
});
