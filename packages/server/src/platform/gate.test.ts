import assert from 'node:assert/strict';
import { it } from 'node:test';
import { Gate } from './gate.ts';

it('a gate runs a bounded number at once, lets a bounded number wait, and refuses the rest at once', async () => {
  const gate = new Gate({ running: 2, waiting: 3 });
  const finish: (() => void)[] = [];
  let most = 0;
  let running = 0;
  const job = async () => {
    running += 1;
    most = Math.max(most, running);
    await new Promise<void>((resolve) => finish.push(resolve));
    running -= 1;
  };
  const runs = Array.from({ length: 7 }, () => gate.run(job));
  assert.equal(await runs[5], undefined);
  assert.equal(await runs[6], undefined);
  for (let index = 0; index < 5; index += 1) {
    for (let turn = 0; finish.length === 0 && turn < 100; turn += 1) await new Promise(setImmediate);
    finish.shift()?.();
  }
  const done = await Promise.all(runs.slice(0, 5));
  assert.equal(done.filter((each) => each !== undefined).length, 5);
  assert.equal(most, 2);
  assert.notEqual(await gate.run(async () => 1), undefined);
});

it('a job that fails makes room for the next', async () => {
  const gate = new Gate({ running: 1, waiting: 1 });
  await assert.rejects(
    gate.run(async () => {
      throw new Error('no');
    }),
    /no/,
  );
  assert.deepEqual(await gate.run(async () => 2), { value: 2 });
});
