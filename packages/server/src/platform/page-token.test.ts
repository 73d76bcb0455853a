import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PageTokens } from './page-token.ts';

describe('page tokens', () => {
  const tokens = new PageTokens('a secret');
  const scope = ['o1', 'listState', 'user'];

  it('give back the position they were sealed with, on any node with the same secret', () => {
    for (const position of ['', 'a', 'user:a\\:b', '漢字 🎈', 'x'.repeat(1024)]) {
      const token = tokens.seal(scope, position);
      assert.match(token, /^[A-Za-z0-9_-]{43,}$/);
      assert.equal(new PageTokens('a secret').open(scope, token), position);
    }
  });

  it('open for the scope they were sealed for and no other', () => {
    const token = tokens.seal(scope, 'position');
    const others = [
      [],
      ['o1'],
      ['o2', 'listState', 'user'],
      ['o1', 'listFiles', 'user'],
      ['o1', 'listState'],
      ['o1', 'listState', 'user', ''],
      ['o1', 'listState', 'use', 'r'],
      ['o1', 'listStateuser'],
      ['listState', 'o1', 'user'],
    ];
    for (const other of others) assert.equal(tokens.open(other, token), undefined, JSON.stringify(other));
    assert.equal(new PageTokens('another secret').open(scope, token), undefined);
  });

  it('do not open when any character was changed, added or left out', () => {
    const token = tokens.seal(scope, 'position');
    for (let at = 0; at < token.length; at += 1) {
      for (const character of ['A', 'B', 'w', '_', '=', ' ', 'é']) {
        if (token[at] === character) continue;
        const altered = token.slice(0, at) + character + token.slice(at + 1);
        assert.equal(tokens.open(scope, altered), undefined, altered);
      }
      assert.equal(tokens.open(scope, token.slice(0, at) + token.slice(at + 1)), undefined);
    }
    for (const added of ['A', '=', '\n', ' ', '.']) {
      assert.equal(tokens.open(scope, token + added), undefined);
      assert.equal(tokens.open(scope, added + token), undefined);
    }
    assert.equal(tokens.open(scope, ''), undefined);
  });
});
