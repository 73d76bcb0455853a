import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseRange } from './range.ts';

test('one range of bytes is read as HTTP means it', () => {
  assert.deepEqual(parseRange('bytes=0-0', 10), { start: 0, end: 0 });
  assert.deepEqual(parseRange('bytes=2-4', 10), { start: 2, end: 4 });
  assert.deepEqual(parseRange('bytes=2-', 10), { start: 2, end: 9 });
  assert.deepEqual(parseRange('Bytes=-3', 10), { start: 7, end: 9 });
  assert.deepEqual(parseRange('bytes=-30', 10), { start: 0, end: 9 });
  assert.deepEqual(parseRange('bytes=5-99999999999999999999999', 10), { start: 5, end: 9 });
});

test('a range past the last byte cannot be satisfied', () => {
  for (const header of ['bytes=10-', 'bytes=10-20', `bytes=${'9'.repeat(400)}-`, 'bytes=-0']) {
    assert.equal(parseRange(header, 10), 'unsatisfiable', header);
  }
  for (const header of ['bytes=0-', 'bytes=-1']) assert.equal(parseRange(header, 0), 'unsatisfiable', header);
});

test('anything else means the whole object', () => {
  const others: (string | undefined)[] = [
    undefined,
    '',
    'bytes',
    'bytes=',
    'bytes=-',
    'bytes=a-b',
    'bytes=4-2',
    'bytes=--1',
    'bytes=1--1',
  ];
  others.push(
    'bytes=0-1,3-4',
    `bytes=${'0-,'.repeat(1000)}0-`,
    'items=0-1',
    'bytes=0x1-2',
    'bytes=1e3-',
    'bytes= 1 - 2',
  );
  for (const header of others) assert.equal(parseRange(header, 10), undefined, String(header));
});
