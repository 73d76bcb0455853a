import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Problem } from '../platform/problem.ts';
import { decodeAttributes, encodeAttributes } from './attributes.ts';

describe('attributes', () => {
  it('come back as they were, names and order included', () => {
    const text =
      '{"z":1,"a":[null,true,-1.5e-7,{"b":""}],"__proto__":{"x":1},"constructor":"c","\\u0000":"\\ud800"}';
    const encoded = encodeAttributes(JSON.parse(text), 1000);
    assert.equal(encoded, text);
    const decoded = decodeAttributes(text);
    assert.deepEqual(Object.keys(decoded), ['z', 'a', '__proto__', 'constructor', '\0']);
    assert.equal(Object.getPrototypeOf(decoded), Object.prototype);
  });

  it('have at most so many bytes as JSON', () => {
    const sized = (count: number, letter: string) => encodeAttributes({ a: letter.repeat(count) }, 1000);
    assert.equal(typeof sized(992, 'x'), 'string');
    assert.equal(typeof sized(496, 'ä'), 'string');
    for (const over of [sized(993, 'x'), sized(497, 'ä'), sized(500, '"')]) {
      assert.ok(over instanceof Problem);
      assert.equal(over.code, 'BODY_TOO_LARGE');
      assert.match(over.detail, /1000 bytes/);
    }
  });

  it('that JSON would lose or not survive are refused', () => {
    const large = encodeAttributes(JSON.parse('{"a":{"b/c":[1,1e400]}}'), 1000);
    assert.ok(large instanceof Problem);
    assert.deepEqual(large.errors, [
      { pointer: '/attributes/a/b~1c/1', message: 'is too large for a number' },
    ]);
    const nested = (levels: number) =>
      encodeAttributes(JSON.parse(`{"a":${'['.repeat(levels)}${']'.repeat(levels)}}`), 1_000_000);
    assert.equal(typeof nested(499), 'string');
    for (const levels of [500, 100_000]) {
      const deep = nested(levels);
      assert.ok(deep instanceof Problem);
      assert.deepEqual(
        deep.errors?.map((error) => error.pointer),
        ['/attributes'],
      );
    }
  });
});
