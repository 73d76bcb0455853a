import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FairQueue } from './fair-queue.ts';

/** Jobs that note when they start and end when they are told to. */
function workshop(limits: {
  running: number;
  runningOfOne: number;
  waiting?: number;
  waitingOfOne?: number;
}) {
  const queue = new FairQueue({ waiting: 100, waitingOfOne: 100, ...limits });
  const started: string[] = [];
  const ends = new Map<string, () => void>();
  return {
    queue,
    started,
    add: (owner: string, name: string) =>
      queue.add(owner, () => {
        started.push(name);
        return new Promise<void>((resolve) => ends.set(name, resolve));
      }),
    end: async (name: string) => {
      ends.get(name)?.();
      await new Promise(setImmediate);
    },
  };
}

describe('a fair queue', () => {
  it('lets owners take turns, however many jobs one of them has waiting', async () => {
    const { add, started, end } = workshop({ running: 1, runningOfOne: 1 });
    for (const name of ['a1', 'a2', 'a3', 'a4']) add('a', name);
    for (const name of ['b1', 'b2']) add('b', name);
    add('c', 'c1');
    for (const name of ['a1', 'a2', 'b1', 'c1', 'a3', 'b2']) await end(name);
    assert.deepEqual(started, ['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'a4']);
  });

  it('runs no more of one owner than its share, and no more in all', async () => {
    const { add, started, end } = workshop({ running: 3, runningOfOne: 2 });
    for (const name of ['a1', 'a2', 'a3', 'a4']) add('a', name);
    assert.deepEqual(started, ['a1', 'a2']);
    for (const name of ['b1', 'b2']) add('b', name);
    assert.deepEqual(started, ['a1', 'a2', 'b1']);
    await end('a1');
    assert.deepEqual(started, ['a1', 'a2', 'b1', 'a3']);
  });

  it('refuses what is too much, of one and of all', () => {
    const { add } = workshop({ running: 1, runningOfOne: 1, waiting: 3, waitingOfOne: 2 });
    for (const name of ['a1', 'a2', 'a3']) assert.ok(add('a', name), name);
    assert.equal(add('a', 'a4'), undefined);
    assert.ok(add('b', 'b1'));
    assert.equal(add('c', 'c1'), undefined);
  });

  it('gives back what has not begun, and only that', async () => {
    const { add, started, end } = workshop({ running: 1, runningOfOne: 1 });
    const first = add('a', 'a1');
    const second = add('a', 'a2');
    add('a', 'a3');
    assert.equal(first?.withdraw(), false);
    assert.equal(second?.withdraw(), true);
    assert.equal(second?.withdraw(), false);
    await end('a1');
    assert.deepEqual(started, ['a1', 'a3']);
  });

  it('waits for what is running when it is closed, and starts nothing more', async () => {
    const { queue, add, started, end } = workshop({ running: 1, runningOfOne: 1 });
    add('a', 'a1');
    add('a', 'a2');
    let closed = false;
    const closing = queue.close().then(() => {
      closed = true;
    });
    await new Promise(setImmediate);
    assert.equal(closed, false);
    await end('a1');
    await closing;
    assert.deepEqual(started, ['a1']);
    assert.equal(add('a', 'a3'), undefined);
    assert.ok(queue.isIdle);
  });
});
