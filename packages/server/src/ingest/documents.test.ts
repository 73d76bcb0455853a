import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { splitArray, splitLines, withoutByteOrderMark } from './documents.ts';
import { chanceOf, damaged, pick, randomJson } from './random-json.fixture.ts';

const rounds = 4000;
const meaningful = '[]{}",\\ a';

const texts = (parts: readonly Uint8Array[] | undefined) =>
  parts?.map((part) => Buffer.from(part).toString());

/** Reads strictly, as the service does; undefined when it is no JSON. */
function parse(bytes: Uint8Array): { value: unknown } | undefined {
  try {
    return { value: JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)) };
  } catch {
    return undefined;
  }
}

describe('cutting an array into its elements', () => {
  it('keeps each of them byte for byte, without the white space around it', () => {
    const cases: [string, string[]][] = [
      ['[]', []],
      [' \t\r\n[ \n ] ', []],
      ['[1]', ['1']],
      ['[1,2 , 3]', ['1', '2', '3']],
      ['[ {"a" : [1,2]} ,\n"x" ]', ['{"a" : [1,2]}', '"x"']],
      ['["],[","\\"]","\\\\","\\\\\\""]', ['"],["', '"\\"]"', '"\\\\"', '"\\\\\\""']],
      ['[[],[[],{}],{"]":"["}]', ['[]', '[[],{}]', '{"]":"["}']],
      ['[12345678901234567890,1.0]', ['12345678901234567890', '1.0']],
    ];
    for (const [array, elements] of cases) {
      assert.deepEqual(texts(splitArray(Buffer.from(array))), elements, array);
    }
  });

  it('refuses what is not one array', () => {
    const others = [
      '',
      ' ',
      '[',
      ']',
      '{}',
      '1',
      '"[]"',
      '[]]',
      '[[]',
      '[1]2',
      '0[1]',
      '[1],[2]',
      '[1][2]',
      '[1,]',
    ];
    const open = ['["]', '["\\"]', '["\\', '[1,"]', '[{"a":1]', '[{"a":[}]', '[}]', '[{]', '["a"', '[,]'];
    for (const text of [...others, ...open]) {
      const elements = splitArray(Buffer.from(text));
      const readable = elements?.every((element) => parse(element) !== undefined);
      assert.notEqual(readable, true, text);
    }
  });

  it('agrees with reading the whole, for any array', () => {
    const chance = chanceOf(20_261_115);
    let elements = 0;
    for (let round = 0; round < rounds; round += 1) {
      const space = pick(chance, ['', ' ', '\n', '\r\n\t']);
      const parts = Array.from({ length: chance(6) }, () => `${space}${randomJson(chance)}${space}`);
      const bytes = Buffer.from(`${space}[${parts.join(',') || space}]${space}`);
      const whole: unknown = JSON.parse(bytes.toString());
      const split = splitArray(bytes);
      assert.ok(split, bytes.toString());
      elements += split.length;
      assert.deepEqual(
        split.map((element) => parse(element)?.value),
        whole,
        bytes.toString(),
      );
    }
    assert.ok(elements > rounds);
  });

  it('finds elements that are all JSON exactly where the whole is a JSON array, however it is damaged', () => {
    const chance = chanceOf(7);
    const count = { arrays: 0, others: 0 };
    for (let round = 0; round < 3 * rounds; round += 1) {
      let bytes: Uint8Array = Buffer.from(`[${randomJson(chance, 3)},${randomJson(chance, 3)}]`);
      for (let times = 1 + chance(3); times > 0; times -= 1) bytes = damaged(chance, bytes);
      const whole = parse(bytes);
      const elements = splitArray(bytes)?.map(parse);
      const isArray = whole !== undefined && Array.isArray(whole.value);
      const agrees = elements?.every((element) => element !== undefined) ?? false;
      assert.equal(agrees, isArray, Buffer.from(bytes).toString());
      if (isArray) {
        assert.deepEqual(
          elements?.map((element) => element?.value),
          whole.value,
        );
      }
      count[isArray ? 'arrays' : 'others'] += 1;
    }
    assert.ok(count.arrays > 500 && count.others > 500, JSON.stringify(count));
  });

  it('survives bytes that mean nothing', () => {
    const chance = chanceOf(99);
    for (let round = 0; round < rounds; round += 1) {
      const bytes = Buffer.from(
        Array.from({ length: chance(40) }, () => pick(chance, [...meaningful])).join(''),
      );
      const elements = splitArray(bytes);
      assert.ok(elements === undefined || elements.every((element) => element.length <= bytes.length));
      assert.ok(splitLines(bytes).every((line) => line.length > 0));
    }
  });
});

describe('cutting lines', () => {
  it('leaves out blank ones and the white space around', () => {
    const cases: [string, string[]][] = [
      ['', []],
      ['\n', []],
      [' \r\n\t\n', []],
      ['a', ['a']],
      ['a\n', ['a']],
      ['a\r\nb\r\n', ['a', 'b']],
      ['\n\n a \n\nb c\n ', ['a', 'b c']],
      ['{"a":"\\n"}\n{}', ['{"a":"\\n"}', '{}']],
      ['é\u2028é\n🎈', ['é\u2028é', '🎈']],
    ];
    for (const [text, lines] of cases) assert.deepEqual(texts(splitLines(Buffer.from(text))), lines, text);
  });

  it('agrees with splitting text, for any lines', () => {
    const chance = chanceOf(3);
    for (let round = 0; round < rounds; round += 1) {
      const lines = Array.from({ length: chance(6) }, () =>
        pick(chance, ['', ' ', '\t', JSON.stringify(JSON.parse(randomJson(chance, 2)))]),
      );
      const ends = pick(chance, ['\n', '\r\n', '\n\n']);
      const bytes = Buffer.from(lines.join(ends) + pick(chance, ['', ends]));
      const expected = lines.map((line) => line.trim()).filter((line) => line !== '');
      assert.deepEqual(texts(splitLines(bytes)), expected);
    }
  });
});

describe('a byte order mark', () => {
  it('is left out at the beginning and nowhere else', () => {
    const mark = '\ufeff';
    for (const [text, expected] of [
      ['', ''],
      [mark, ''],
      [`${mark}{}`, '{}'],
      [`${mark}${mark}{}`, `${mark}{}`],
      [`{}${mark}`, `{}${mark}`],
      ['{}', '{}'],
      ['a', 'a'],
    ] as const) {
      assert.equal(Buffer.from(withoutByteOrderMark(Buffer.from(text))).toString(), expected);
    }
    assert.deepEqual(withoutByteOrderMark(Buffer.from([0xef, 0xbb])), Buffer.from([0xef, 0xbb]));
  });
});
