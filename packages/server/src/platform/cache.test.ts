import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LoadingCache } from './cache.ts';
import { adjustableClock } from './clock.ts';

describe('the loading cache', () => {
  const clock = adjustableClock(0);
  const make = (load: (key: string) => Promise<string | undefined>, trustMilliseconds = Infinity) =>
    new LoadingCache({ load, clock, trustMilliseconds, capacity: 2 });

  it('reads once for any number who ask at the same time, and then not again', async () => {
    let reads = 0;
    const cache = make(async (key) => {
      reads += 1;
      return key.toUpperCase();
    });
    assert.deepEqual(await Promise.all([cache.get('a'), cache.get('a'), cache.get('a')]), ['A', 'A', 'A']);
    assert.equal(await cache.get('a'), 'A');
    assert.equal(cache.peek('a'), 'A');
    assert.equal(reads, 1);
  });

  it('does not keep a value that changed while it was being read', async () => {
    let stored = 'old';
    let release = () => {};
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    const cache = make(async () => {
      const value = stored;
      await gate;
      return value;
    });
    const before = cache.get('a');
    stored = 'new';
    cache.invalidate('a');
    release();
    assert.equal(await before, 'old');
    assert.equal(cache.peek('a'), undefined);
    assert.equal(await cache.get('a'), 'new');
  });

  it('asks again when it cannot be told of changes', async () => {
    let value = '1';
    const cache = make(async () => value, 1000);
    assert.equal(await cache.get('a'), '1');
    value = '2';
    assert.equal(await cache.get('a'), '1');
    clock.advance(1000);
    assert.equal(await cache.get('a'), '2');
  });

  it('keeps no more than it may, and nothing that is absent', async () => {
    const cache = make(async (key) => (key === 'none' ? undefined : key));
    for (const key of ['a', 'b', 'c', 'none']) await cache.get(key);
    assert.deepEqual(
      ['a', 'b', 'c', 'none'].map((key) => cache.peek(key)),
      [undefined, 'b', 'c', undefined],
    );
  });

  it('passes a failed read on and tries again', async () => {
    let fails = true;
    const cache = make(async () => {
      if (fails) throw new Error('engine down');
      return 'up';
    });
    await assert.rejects(cache.get('a'), /engine down/);
    fails = false;
    assert.equal(await cache.get('a'), 'up');
  });
});
