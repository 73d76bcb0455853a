import assert from 'node:assert/strict';
import { it } from 'node:test';
import { csvOf, jsonOf } from './exports.ts';
import type { Row } from './stored-results.ts';

const columns = [
  ['n', 'bigint'],
  ['x', 'double'],
  ['ok', 'boolean'],
  ['s', 'varchar'],
  ['l', 'struct("a" double)[]'],
  ['s', 'json'],
  ['d', 'decimal(5,2)'],
].map(([name = '', type = ''], index) => ({ name, distinctName: index === 5 ? 's_1' : name, type }));

async function* rows(...given: Row[]) {
  yield* given;
}

async function textOf(pieces: AsyncIterable<string>): Promise<string> {
  let text = '';
  for await (const piece of pieces) text += piece;
  return text;
}

it('a result is written as CSV with names, quotes where needed, and nothing for NULL', async () => {
  const text = await textOf(
    csvOf(
      columns,
      rows(
        ['1', '1.5', 'true', 'a "b", c\nd', '[{"a":1}]', '{}', '1.50'],
        [null, null, null, '', null, null, null],
      ),
    ),
  );
  assert.equal(text, 'n,x,ok,s,l,s,d\r\n1,1.5,true,"a ""b"", c\nd","[{""a"":1}]",{},1.50\r\n,,,"",,,\r\n');
});

it('a result is written as JSON with its types, and with a name for each of two columns of one name', async () => {
  const text = await textOf(
    jsonOf(
      columns,
      rows(
        ['9007199254740993', 'nan', 'false', 'x', '[{"a":NaN}]', '{"k":[1]}', '1.50'],
        [null, '1e+300', null, null, null, null, null],
      ),
    ),
  );
  assert.ok(text.includes('"n":9007199254740993'), 'digits are kept');
  assert.deepEqual(JSON.parse(text), [
    { n: 9007199254740992, x: 'nan', ok: false, s: 'x', l: '[{"a":NaN}]', s_1: { k: [1] }, d: 1.5 },
    { n: null, x: 1e300, ok: null, s: null, l: null, s_1: null, d: null },
  ]);
  assert.deepEqual(JSON.parse(await textOf(jsonOf(columns, rows()))), []);
});
