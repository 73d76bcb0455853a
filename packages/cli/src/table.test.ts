import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { chartOf } from './chart.ts';
import { safeJson, safeText } from './safe-text.ts';
import { oneLine, tableOf, widthOf } from './table.ts';

describe('a table', () => {
  it('has aligned columns, with numbers to the right', () => {
    assert.deepEqual(
      tableOf(
        ['page', 'views'],
        [
          ['/', '10'],
          ['/pricing', '-2.5'],
          [null, null],
        ],
      ),
      ['page      views', '--------  -----', '/            10', '/pricing   -2.5', 'null       null'],
    );
  });

  it('counts wide characters as what they take', () => {
    assert.equal(widthOf('日本'), 4);
    assert.equal(widthOf('e\u0301'), 1);
    const [, , first = '', second = ''] = tableOf(
      ['a', 'b'],
      [
        ['日本', 'x'],
        ['abcd', 'y'],
      ],
    );
    assert.equal(widthOf(first), widthOf(second));
  });

  it('keeps a cell in one line and cuts what is too long', () => {
    assert.equal(oneLine('a\n\n b\tc'), 'a b c');
    assert.equal(oneLine('x'.repeat(100), 10), `${'x'.repeat(9)}…`);
    assert.equal(widthOf(oneLine('日'.repeat(100), 11)), 11);
  });

  it('of no columns or no rows is no fault', () => {
    assert.deepEqual(tableOf(['a'], []), ['a', '-']);
    assert.equal(tableOf([], []).length, 2);
  });

  it('of many rows is made without trouble', () => {
    const rows = Array.from({ length: 200_000 }, (_value, index) => [String(index)]);
    assert.equal(tableOf(['n'], rows).length, 200_002);
  });
});

describe('texts of others', () => {
  it('cannot steer a terminal', () => {
    const hostile = '\u001b]0;title\u0007\u001b[2J\u009b31m\u0000\r\u0008\u007f\u202etxt\u2066';
    for (const safe of [safeText(hostile), oneLine(hostile, 200), safeJson({ hostile, [hostile]: 1 })]) {
      assert.doesNotMatch(safe, /[\p{Cc}\u202a-\u202e\u2066-\u2069]/u);
    }
    assert.match(safeText('\u001b[31m'), /^\\x1b\[31m$/);
    assert.deepEqual(
      tableOf([hostile], [[hostile]])
        .join('')
        .match(/\p{Cc}/u),
      null,
    );
  });

  it('keep their lines and tabs, and JSON says the same as before', () => {
    assert.equal(safeText('a\n\tb'), 'a\n\tb');
    const value = { text: 'a\u009bb\u2028\u007f', list: [1, null] };
    assert.deepEqual(JSON.parse(safeJson(value)), value);
    assert.deepEqual(JSON.parse(safeJson(value, 2)), value);
    assert.equal(safeJson(undefined), 'null');
  });
});

describe('a chart', () => {
  it('draws bars as long as the numbers are large', () => {
    const lines = chartOf(
      ['page', 'views'],
      [
        ['/', '100'],
        ['/a', '50'],
        ['/b', '0'],
      ],
      60,
    );
    const lengths = lines.map((line) => [...line].filter((character) => character >= '▀').length);
    assert.equal(lines.length, 3);
    assert.ok((lengths[0] ?? 0) > (lengths[1] ?? 0) && (lengths[1] ?? 0) > 0 && lengths[2] === 0);
    for (const line of lines) assert.ok(widthOf(line) <= 60, line);
  });

  it('draws a line over time', () => {
    const rows = Array.from({ length: 30 }, (_value, index) => [
      `2026-11-${String(index + 1).padStart(2, '0')}`,
      String(index * index),
    ]);
    const lines = chartOf(['day', 'n'], rows, 60);
    assert.equal(lines.length, 11);
    assert.match(lines.at(-1) ?? '', /2026-11-01 .*2026-11-30/);
    assert.match(lines[0] ?? '', /841/);
  });

  it('says so when there is nothing to draw', () => {
    for (const rows of [[], [['a', 'b']], [['a', '']], [['a', 'NaN']]])
      assert.deepEqual(chartOf(['x', 'y'], rows, 60), ['There is no column of numbers to draw.']);
    assert.equal(
      chartOf(
        ['x', 'y'],
        [
          ['a', null],
          ['b', '-3'],
        ],
        60,
      ).length,
      2,
    );
  });
});
