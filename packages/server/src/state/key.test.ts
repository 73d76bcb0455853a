import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Problem } from '../platform/problem.ts';
import { checkedKey, mergeKey } from './key.ts';

const limits = { stateKeyParts: 32, stateKeyBytes: 1024 };

describe('a merged key', () => {
  it('joins parts with a colon and escapes colons and backslashes inside them', () => {
    assert.equal(mergeKey(['user', '42']), 'user:42');
    assert.equal(mergeKey(['a:b']), 'a\\:b');
    assert.equal(mergeKey(['a\\', 'b']), 'a\\\\:b');
    assert.equal(mergeKey(['a\\:b', ':', '\\']), 'a\\\\\\:b:\\::\\\\');
    assert.equal(mergeKey(['漢字', '🎈', ' ']), '漢字:🎈: ');
  });

  it('is different for different parts, and begins with another and a colon only below it', () => {
    const letters = ['a', ':', '\\', ';', 'a:', '\\:', 'a\\', '::', 'aa'];
    const keys: string[][] = [];
    for (const one of letters) {
      keys.push([one]);
      for (const other of letters) keys.push([one, other], [one, other, 'a']);
    }
    assert.equal(new Set(keys.map(mergeKey)).size, keys.length);
    for (const prefix of keys) {
      for (const key of keys) {
        const merged = mergeKey(key);
        const start = mergeKey(prefix);
        const below = key.length > prefix.length && prefix.every((part, index) => key[index] === part);
        assert.equal(merged.startsWith(`${start}:`), below, `${start} and ${merged}`);
        assert.equal(merged >= `${start}:` && merged < `${start};`, below, `${start} and ${merged}`);
      }
    }
  });

  it('is refused with a pointer to what is wrong', () => {
    const refused = (parts: string[], field: 'keyParts' | 'keyPrefix' = 'keyParts') => {
      const key = checkedKey(parts, field, limits);
      assert.ok(key instanceof Problem, JSON.stringify(key));
      assert.equal(key.code, 'VALIDATION_FAILED');
      return key.errors?.map((error) => error.pointer);
    };
    assert.deepEqual(refused([]), ['/keyParts']);
    assert.equal(checkedKey([], 'keyPrefix', limits), '');
    assert.deepEqual(refused(['a', '']), ['/keyParts/1']);
    assert.deepEqual(refused(['', 'a'], 'keyPrefix'), ['/keyPrefix/0']);
    assert.deepEqual(refused(['a\0']), ['/keyParts/0']);
    assert.deepEqual(refused(['a', 'b', '\ud800']), ['/keyParts/2']);
    assert.deepEqual(refused(Array.from({ length: 33 }, () => 'a')), ['/keyParts']);
    assert.equal(
      typeof checkedKey(
        Array.from({ length: 32 }, () => 'a'),
        'keyParts',
        limits,
      ),
      'string',
    );
  });

  it('has at most so many bytes, escapes and colons included', () => {
    const fits = (parts: string[]) => typeof checkedKey(parts, 'keyParts', limits) === 'string';
    assert.ok(fits(['a'.repeat(1024)]));
    assert.ok(!fits(['a'.repeat(1025)]));
    assert.ok(fits(['a'.repeat(511), 'b'.repeat(512)]));
    assert.ok(!fits(['a'.repeat(512), 'b'.repeat(512)]));
    assert.ok(fits([':'.repeat(512)]));
    assert.ok(!fits([':'.repeat(513)]));
    assert.ok(fits(['ä'.repeat(512)]));
    assert.ok(!fits(['ä'.repeat(513)]));
  });
});
