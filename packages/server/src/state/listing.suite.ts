import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { good, limits, refusal, type StateSite } from './state-site.fixture.ts';

/** What lists must do on every engine of the database. */
export function listingSuite(site: StateSite): void {
  const { listAll, put } = site;

  describe('a list', () => {
    const keys = async (prefix: string[], limit?: number) =>
      (await listAll(prefix, limit)).map((entry) => entry.keyParts);

    it('has the entries that begin with whole parts, by the bytes of their keys', async () => {
      const all = [
        ['a'],
        ['a', 'b'],
        ['a', 'b', 'c'],
        ['a', '漢'],
        ['a-b'],
        ['a!'],
        ['a:'],
        ['a;'],
        ['a\\'],
        ['a:b'],
        ['a\\', 'b'],
        ['ab'],
        ['b', 'a'],
        ['🎈'],
        ['\uffee'],
      ];
      for (const key of all) await put(key);
      const sorted = (await listAll()).map((entry) => entry.mergedKey);
      assert.equal(sorted.length, all.length);
      assert.deepEqual(
        sorted,
        sorted.toSorted((one, next) => Buffer.compare(Buffer.from(one), Buffer.from(next))),
      );
      for (const limit of [1, 2, 1000]) {
        assert.deepEqual(await keys(['a'], limit), [['a'], ['a', 'b'], ['a', 'b', 'c'], ['a', '漢']]);
        assert.deepEqual(await keys(['a', 'b'], limit), [
          ['a', 'b'],
          ['a', 'b', 'c'],
        ]);
        assert.deepEqual(await keys(['a:'], limit), [['a:']]);
        assert.deepEqual(await keys(['a\\'], limit), [['a\\'], ['a\\', 'b']]);
        assert.deepEqual(await keys(['b'], limit), [['b', 'a']]);
        assert.deepEqual(await keys(['c'], limit), []);
        assert.equal((await keys([], limit)).length, all.length);
      }
    });

    it('goes on where it was when its last entry is gone', async () => {
      for (const key of ['a', 'b', 'c']) await put(['p', key]);
      await put(['p']);
      const first = good(await site.state.list(site.organizationId, { keyPrefix: ['p'], limit: 1 }));
      assert.deepEqual([first.entries[0]?.mergedKey, first.next], ['p', 'p']);
      await site.state.delete(site.organizationId, ['p']);
      await site.state.delete(site.organizationId, ['p', 'a']);
      const second = good(
        await site.state.list(site.organizationId, { keyPrefix: ['p'], limit: 1, after: first.next }),
      );
      assert.deepEqual([second.entries[0]?.mergedKey, second.next], ['p:b', 'p:b']);
      await site.state.delete(site.organizationId, ['p', 'b']);
      const last = good(
        await site.state.list(site.organizationId, { keyPrefix: ['p'], limit: 1, after: second.next }),
      );
      assert.deepEqual([last.entries[0]?.mergedKey, last.next], ['p:c', undefined]);
    });

    it('has shorter pages where entries are large, and misses none', async () => {
      const text = 'x'.repeat(limits.stateAttributesBytes - 20);
      const upserts = Array.from({ length: 25 }, (_, index) => ({
        keyParts: ['large', String(index)],
        attributes: { text },
      }));
      assert.deepEqual(await site.state.upsertMany(site.organizationId, upserts), Array(25).fill(undefined));
      const page = good(await site.state.list(site.organizationId, { keyPrefix: ['large'], limit: 1000 }));
      assert.equal(page.entries.length, 11);
      assert.equal(page.next, page.entries.at(-1)?.mergedKey);
      assert.equal((await keys(['large'])).length, 25);
    });

    it('refuses a prefix that no key can have', async () => {
      const problem = refusal(
        await site.state.list(site.organizationId, { keyPrefix: ['a', '\udfff'], limit: 10 }),
      );
      assert.deepEqual(problem.errors?.[0]?.pointer, '/keyPrefix/1');
    });
  });
}
