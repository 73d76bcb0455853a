import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { firstColumnId } from '../columns.ts';
import { Typer } from './typer.ts';

/** Numbers that are the same in every run. */
function seeded(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

type Dice = (below: number) => number;

function pick<Item>(dice: Dice, items: readonly [Item, ...Item[]]): Item {
  return items[dice(items.length)] ?? items[0];
}

function someValue(dice: Dice, depth: number): string {
  const scalars = [
    'null',
    'true',
    'false',
    '1',
    '-5',
    '1.5',
    '1e3',
    '0',
    '-0',
    '9007199254740993',
    '1e400',
    '12345678901234567890',
  ] as const;
  const texts = [
    '"x"',
    '""',
    '"2026-01-31"',
    '"2026-01-31T10:00:00Z"',
    '"2026-01-31T10:00:00+02:00"',
    '"2026-02-30"',
    '"\\u00e9"',
    '"\\ud83d\\ude00"',
    '"\\ud800"',
    '"é😀"',
    '"a\\"b\\\\"',
  ] as const;
  const kind = dice(depth > 3 ? 2 : 4);
  if (kind === 0) return pick(dice, scalars);
  if (kind === 1) return pick(dice, texts);
  if (kind === 2) return someObject(dice, depth + 1);
  return `[${Array.from({ length: dice(4) }, () => someValue(dice, depth + 1)).join(pick(dice, [',', ' , ', ',\n']))}]`;
}

function someObject(dice: Dice, depth: number): string {
  const names = ['a', 'b', 'A', 'c', '_key', '', '__proto__', 'é', '\\u0061', 'x\\ud800'] as const;
  const members = Array.from(
    { length: dice(5) },
    () => `"${pick(dice, names)}"${pick(dice, [':', ' :\t'])}${someValue(dice, depth)}`,
  );
  return `{${members.join(pick(dice, [',', ',\r\n  ']))}}`;
}

function withEnd(text: string): { readonly bytes: Buffer; readonly end: number } {
  const bytes = Buffer.from(`${text}\n`);
  return { bytes, end: bytes.length - 1 };
}

function newTyper(open = true): Typer {
  return new Typer({ columns: [], nextColumnId: firstColumnId, open });
}

describe('the typer', () => {
  it('sees at a glance only what it would not change on a closer look', () => {
    const dice = seeded(7);
    let glances = 0;
    for (let round = 0; round < 300; round++) {
      const typer = newTyper();
      for (let message = 0; message < 40; message++) {
        const text = someObject(dice, 0);
        const { bytes, end } = withEnd(text);
        const fits = typer.fits(bytes, 0, end);
        assert.equal(bytes[end], 0x0a);
        const before = typer.columns();
        const typed = typer.type(Buffer.from(text));
        if (fits) {
          glances++;
          assert.equal(typed.rescued, undefined, text);
          assert.deepEqual(typer.columns(), before, text);
          assert.ok(!bytes.subarray(0, end).includes(0x0a), text);
        }
        // What is kept is JSON in one line, and what is rescued is JSON.
        assert.ok(!/[\n\r]/.test(typed.members), text);
        JSON.parse(`{${typed.members}}`);
        if (typed.rescued !== undefined) JSON.parse(typed.rescued);
      }
    }
    assert.ok(glances > 200, `${glances} messages fit at a glance`);
  });

  it('knows a message it has seen before at a glance, in any order of its fields', () => {
    const typer = newTyper();
    const one = '{"a":1,"b":"x","c":{"d":[1,2],"e":null},"f":"2026-01-31","g":1.5}';
    const other = '{"g":2,"f":null,"c":{"e":null,"d":[]},"b":"\\u00e9\\ud83d\\ude00","a":-7}';
    typer.type(Buffer.from(one));
    for (const text of [one, other, '{"b":"y"}', '{"g":0.25}', one]) {
      const { bytes, end } = withEnd(text);
      assert.ok(typer.fits(bytes, 0, end), text);
    }
    for (const text of [
      '{}',
      '{"a":1,"a":2}',
      '{"z":1}',
      '{"a":1.5}',
      '{"b":"\\ud800"}',
      '{"a":01}',
      '{"a":1',
      '{"a":1}}',
      '{"f":"2026-02-30"}',
      '{"c":{"d":[1,"x"]}}',
    ]) {
      const { bytes, end } = withEnd(text);
      assert.ok(!typer.fits(bytes, 0, end), text);
    }
  });

  it('gives new columns ids only when it is asked, and the same ones again', () => {
    const typer = newTyper();
    typer.type(Buffer.from('{"a":{"b":1}}'));
    assert.deepEqual(typer.columns(), typer.columns());
    assert.equal(typer.columns().nextColumnId, firstColumnId + 2);
  });

  it('learns nothing where a schema was uploaded', () => {
    const typer = newTyper(false);
    assert.deepEqual(typer.type(Buffer.from('{"a":1,"b":null}')), { members: '', rescued: '{"a":1}' });
    assert.deepEqual(typer.columns().columns, []);
  });
});
