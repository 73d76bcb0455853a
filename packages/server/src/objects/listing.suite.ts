import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { StoreUnderTest } from './objects.suite.ts';

/** What listings do in every store. */
export function listingSuite(under: () => StoreUnderTest): void {
  test('lists keys in byte order, whatever their nesting, in pages', async () => {
    const { store } = under();
    const keys = [
      'Z',
      'a',
      'a-b',
      'a.b',
      'a.d/x',
      'a=1/b/c',
      'a=1/b=2',
      'a0',
      'aa/b/c',
      'aa/b/d',
      'aa/c',
      'aa-x',
      'aa.x/y',
      'aa0',
      'b/1',
    ];
    const sorted = [...keys].sort().map((key) => `list/${key}`);
    for (const key of keys) await store.put(`list/${key}`, Buffer.from(key));
    for (const limit of [1, 2, 5, 14, 15, 1000]) {
      const found: string[] = [];
      let after: string | undefined;
      for (let pages = 0; pages <= keys.length; pages += 1) {
        const page = await store.list('list/', after === undefined ? { limit } : { after, limit });
        assert.ok(page.objects.length <= limit);
        for (const { key, size, lastModified } of page.objects) {
          assert.equal(size, key.length - 'list/'.length);
          assert.ok(lastModified > 0);
          found.push(key);
        }
        after = page.next;
        if (after === undefined) break;
      }
      assert.deepEqual(found, sorted);
    }
  });

  test('lists what begins with a prefix and comes after a key that need not exist', async () => {
    const { store } = under();
    for (const key of ['p/aa/1', 'p/aa/2', 'p/ab', 'p/b/1', 'pq']) await store.put(key, Buffer.from('x'));
    const list = async (prefix: string, after?: string) => {
      const page = await store.list(prefix, after === undefined ? { limit: 100 } : { after, limit: 100 });
      return page.objects.map((object) => object.key);
    };
    assert.deepEqual(await list('p/a'), ['p/aa/1', 'p/aa/2', 'p/ab']);
    assert.deepEqual(await list('p/aa/'), ['p/aa/1', 'p/aa/2']);
    assert.deepEqual(await list('p'), ['p/aa/1', 'p/aa/2', 'p/ab', 'p/b/1', 'pq', 'put/object.bin']);
    assert.deepEqual(await list('p/', 'p/aa/1'), ['p/aa/2', 'p/ab', 'p/b/1']);
    assert.deepEqual(await list('p/', 'p/aa/11'), ['p/aa/2', 'p/ab', 'p/b/1']);
    assert.deepEqual(await list('p/', 'p/ac'), ['p/b/1']);
    assert.deepEqual(await list('p/b/', 'a'), ['p/b/1']);
    assert.deepEqual(await list('p/b/', 'q'), []);
    assert.deepEqual(await list('nothing/here'), []);
  });
}
