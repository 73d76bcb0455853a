import assert from 'node:assert/strict';
import { test } from 'node:test';
import { InvalidKeyError, lastSegment, parseKey, requireKey, requirePrefix } from './key.ts';

test('a key of safe segments is let through as it is', () => {
  for (const text of [
    'a',
    'acme/orders/year=2026/month=11/part-0_1.parquet',
    '-',
    '=',
    'a..b',
    'x'.repeat(250),
  ]) {
    const parse = parseKey(text);
    assert.ok(parse.ok);
    assert.equal(parse.key, text);
  }
});

test('a refusal says why without repeating the text', () => {
  for (const text of [
    '',
    '..',
    'secret/../x',
    '/secret',
    'secret/',
    'sec\0ret',
    'x'.repeat(2000),
    'y'.repeat(251),
  ]) {
    const parse = parseKey(text);
    assert.ok(!parse.ok);
    assert.match(parse.reason, /^The key .+\.$/);
    assert.doesNotMatch(parse.reason, /secret|xxx|yyy/);
  }
});

test('a key may have 1024 bytes and not one more', () => {
  const longest = `${'x'.repeat(250)}/`.repeat(4) + 'y'.repeat(20);
  assert.equal(longest.length, 1024);
  assert.ok(parseKey(longest).ok);
  assert.ok(!parseKey(`${longest}y`).ok);
});

test('a prefix may be empty, end in a slash or end inside a segment, and is otherwise held to the same', () => {
  for (const text of ['', 'a', 'a/', 'a/b', 'a/b/']) assert.equal(requirePrefix(text), text);
  for (const text of ['/', '//', 'a//', '../', 'a/..', 'a/.', '.a']) {
    assert.throws(() => requirePrefix(text), InvalidKeyError);
  }
});

test('the last segment of a key is its name', () => {
  assert.equal(lastSegment(requireKey('a/b/c.zip')), 'c.zip');
  assert.equal(lastSegment(requireKey('c.zip')), 'c.zip');
});
