import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { answerOf, call, failureOf, openSite, type Site, until } from './execution.fixture.ts';

describe('the processes of a version', () => {
  let site: Site;
  before(async () => {
    site = await openSite({ idleLimitMs: 300 });
  });
  after(() => site.close());

  const slow = {
    'index.js': 'exports.handler = (e) => new Promise((r) => setTimeout(r, e.ms, process.pid));',
  };
  const counting = { 'index.js': 'let n = 0; exports.handler = () => (n += 1);' };

  it('start with the first invocation, are used again, and stop when there is nothing to do', async () => {
    const pool = await site.pool(counting);
    assert.deepEqual(pool.figures(), { processes: 0, busy: 0 });
    assert.deepEqual([await answerOf(pool), await answerOf(pool), await answerOf(pool)], [1, 2, 3]);
    assert.deepEqual(pool.figures(), { processes: 1, busy: 0 });
    await until('it is stopped', () => pool.figures().processes === 0);
    assert.equal(pool.trouble, undefined);
    assert.equal(await answerOf(pool), 1);
    await pool.close();
  });

  it('grow with the work up to the concurrency, and each does one thing at a time', async () => {
    const pool = await site.pool(slow, { concurrency: 3 });
    const calls = Array.from({ length: 6 }, () => answerOf(pool, { ms: 1000 }));
    await until('three are busy', () => pool.figures().busy === 3, 10_000);
    assert.equal(pool.figures().processes, 3);
    const pids = await Promise.all(calls);
    assert.equal(new Set(pids).size, 3);
    await until('they are stopped', () => pool.figures().processes === 0);
    await pool.close();
  });

  it('that do not start fail what waits with the reason, and are tried again with growing delay', async () => {
    const pool = await site.pool({ 'index.js': 'console.log("try"); throw new Error("not yet");' });
    site.lines.length = 0;
    const startedAt = performance.now();
    for (let n = 0; n < 4; n += 1) assert.equal(await failureOf(pool), 'unavailable Error: not yet');
    // 100, 200 and 400 milliseconds between the four.
    assert.ok(performance.now() - startedAt >= 700);
    assert.equal(site.lines.filter(({ text }) => text === 'try').length, 4);
    assert.equal(pool.trouble, 'Error: not yet');
    await pool.close();
  });

  it('that are killed from outside fail what they hold, and are replaced', async () => {
    const pool = await site.pool(slow);
    const pid = await answerOf(pool, { ms: 0 });
    const held = failureOf(pool, { ms: 5000 });
    await until('it is busy', () => pool.figures().busy === 1);
    process.kill(Number(pid), 'SIGKILL');
    assert.equal(await held, 'crash Runtime.ExitError: The process was ended by SIGKILL without an answer.');
    assert.notEqual(await answerOf(pool, { ms: 0 }), pid);
    await pool.close();
  });

  it('finish what is in hand when they are drained, and take nothing new', async () => {
    const pool = await site.pool(slow);
    const calls = [answerOf(pool, { ms: 100 }), answerOf(pool, { ms: 10 })];
    await until('one is busy', () => pool.figures().busy === 1);
    const drained = pool.drain();
    assert.equal(await failureOf(pool, { ms: 0 }), 'unavailable Task.Stopped: The task was stopped.');
    assert.equal(new Set(await Promise.all(calls)).size, 1);
    await drained;
    assert.deepEqual(pool.figures(), { processes: 0, busy: 0 });
  });

  it('are not waited for longer than their limit when they are drained', async () => {
    const pool = await site.pool({ 'index.js': 'exports.handler = () => { for (;;); };' }, { timeoutSec: 1 });
    const held = failureOf(pool);
    await until('it is busy', () => pool.figures().busy === 1);
    const startedAt = performance.now();
    await pool.drain();
    assert.ok(performance.now() - startedAt < 2500);
    assert.match(await held, /^timeout |^unavailable /);
  });

  it('fail what they hold and what waits when they are closed', async () => {
    const pool = await site.pool(slow);
    const calls = [failureOf(pool, { ms: 5000 }), failureOf(pool, { ms: 5000 })];
    await until('one is busy', () => pool.figures().busy === 1);
    await Promise.all([pool.close(), pool.close()]);
    for (const outcome of await Promise.all(calls)) assert.match(outcome, /^unavailable Task\.Stopped/);
  });

  it('do not start for what was given up before', async () => {
    const pool = await site.pool(counting);
    const result = await call(pool, {}, { signal: AbortSignal.abort() });
    assert.ok('error' in result && result.kind === 'unavailable');
    assert.equal(pool.figures().processes, 0);
    await pool.close();
  });

  it('have a bounded queue', async () => {
    const pool = await site.pool(slow);
    const calls = Array.from({ length: 1100 }, () => call(pool, { ms: 60_000 }));
    await until('one is busy', () => pool.figures().busy === 1);
    await pool.close();
    const types = (await Promise.all(calls)).map((result) =>
      'error' in result ? result.error.type : 'value',
    );
    assert.ok(types.filter((type) => type === 'Task.Overloaded').length >= 98);
  });

  it('cannot be had where the sandbox that was asked for is missing', async () => {
    const strict = await openSite({ sandbox: 'bubblewrap' });
    try {
      if (strict.execution.refusal === undefined) {
        assert.match(strict.execution.isolation, /bubblewrap sandboxes/);
      } else {
        assert.match(strict.execution.refusal, /MILLRACE_TASK_SANDBOX is bubblewrap/);
        const pool = await strict.pool(counting);
        assert.match(await failureOf(pool), /^unavailable Runtime\.StartFailed: .*bubblewrap/);
      }
    } finally {
      await strict.close();
    }
  });
});

it('without a sandbox says so in one line', async () => {
  const site = await openSite({ sandbox: 'none' });
  assert.match(site.execution.isolation, /WITHOUT a sandbox/);
  assert.doesNotMatch(site.execution.isolation, /\n/);
  await site.close();
});
