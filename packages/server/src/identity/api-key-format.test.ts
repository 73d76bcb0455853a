import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { systemRandom } from '../platform/random.ts';
import { isApiKey, makeApiKey } from './api-key-format.ts';

describe('the form of API keys', () => {
  it('is mr_, 30 random characters and 6 of checksum', () => {
    const keys = new Set(Array.from({ length: 1000 }, () => makeApiKey(systemRandom)));
    assert.equal(keys.size, 1000);
    for (const key of keys) {
      assert.match(key, /^mr_[0-9A-Za-z]{36}$/);
      assert.ok(isApiKey(key));
    }
  });

  it('recognises any single wrong character, swapped neighbours, and anything else', () => {
    const key = makeApiKey(systemRandom);
    for (let index = 3; index < key.length; index += 1) {
      for (const letter of 'aZ5') {
        if (letter === key[index]) continue;
        assert.equal(isApiKey(key.slice(0, index) + letter + key.slice(index + 1)), false);
      }
    }
    for (const text of ['', 'mr_', key.slice(1), `${key}a`, key.slice(0, -1), ` ${key}`, `${key}\n`]) {
      assert.equal(isApiKey(text), false, JSON.stringify(text));
    }
  });
});
