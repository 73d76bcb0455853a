import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Column, nestedColumns, quoteIdentifier, systemColumns } from './columns.ts';
import {
  query,
  rescuedOf,
  rowsOf,
  schemaOf,
  someHour,
  typesOf,
  valuesOf,
  Workshop,
} from './converter/reading.fixture.ts';
import type { WriteOutcome } from './converter.ts';

describe('the converter', { timeout: 120_000 }, () => {
  let workshop: Workshop;
  before(() => {
    workshop = new Workshop();
  });
  after(() => workshop.close());

  const fields = (values: readonly string[]): string[] => values.map((value) => `{"a":${value}}`);

  /** Writes one field with these values and checks what stands in its column and what was rescued. */
  async function check(
    values: readonly string[],
    type: string,
    expected: readonly unknown[],
    rescued: readonly unknown[] = [],
  ) {
    const outcome = await workshop.write(fields(values));
    assert.deepEqual(typesOf(outcome), { a: type });
    assert.deepEqual(await valuesOf(outcome, 'a'), expected);
    assert.deepEqual(
      await rescuedOf(outcome),
      values.map((_, index) => rescued[index] ?? null),
    );
    return outcome;
  }

  it('writes the fields of messages with types, and where they came from', async () => {
    const outcome = await workshop.write([
      '{"n":1,"x":1.5,"b":true,"s":"text","d":"2026-01-31","t":"2026-01-31T10:00:00Z"}',
    ]);
    assert.deepEqual(typesOf(outcome), {
      n: 'bigint',
      x: 'double',
      b: 'boolean',
      s: 'varchar',
      d: 'date',
      t: 'timestamp',
    });
    assert.deepEqual(await rowsOf(outcome), [
      {
        n: '1',
        x: 1.5,
        b: true,
        s: 'text',
        d: '2026-01-31',
        t: '2026-01-31 10:00:00',
        _key: 'key-0',
        _id: 'id-0',
        _ingested_at: '2026-01-01 12:00:00',
        _rescued: null,
      },
    ]);
    const [file] = outcome.files;
    assert.ok(file !== undefined && file.bytes > 0);
    assert.deepEqual(
      { ...file, path: '', bytes: 0 },
      {
        hour: someHour,
        path: '',
        rows: 1,
        bytes: 0,
        rescued: 0,
        minIngestedAt: someHour,
        maxIngestedAt: someHour,
      },
    );
  });

  it('gives every column its field id, also inside structs and lists', async () => {
    const outcome = await workshop.write([
      '{"a":1,"s":{"x":1,"y":{"z":"deep"}},"l":[1],"ls":[{"p":1}],"ll":[["a"]],"j":{}}',
    ]);
    const ids = new Map<number, string>();
    const collect = (columns: readonly Column[]): void => {
      for (const { id, name, type } of columns) {
        assert.ok(!ids.has(id), `${id} twice`);
        ids.set(id, name);
        collect(nestedColumns(type));
      }
    };
    collect([...outcome.columns, ...systemColumns]);
    assert.equal(outcome.nextColumnId, Math.max(...ids.keys()) + 1);
    const schema = await schemaOf(outcome.files[0]?.path ?? '');
    assert.deepEqual(
      schema.filter(({ id }) => id !== null).sort((one, other) => Number(one.id) - Number(other.id)),
      [...ids].map(([id, name]) => ({ name, id })).sort((one, other) => one.id - other.id),
    );
    assert.deepEqual(
      schema.filter(({ id }) => id === null).map(({ name }) => name),
      ['duckdb_schema', 'list', 'list', 'list', 'list'],
    );
  });

  it('keeps ids, and gives new columns the next ones', async () => {
    const first = await workshop.write(['{"a":1,"s":{"x":1}}']);
    const second = await workshop.write(['{"b":1,"s":{"y":"2"},"a":2}'], first);
    assert.deepEqual(second.columns, [
      { id: 16, name: 'a', type: { kind: 'bigint' } },
      {
        id: 17,
        name: 's',
        type: {
          kind: 'struct',
          fields: [
            { id: 18, name: 'x', type: { kind: 'bigint' } },
            { id: 19, name: 'y', type: { kind: 'varchar' } },
          ],
        },
      },
      { id: 20, name: 'b', type: { kind: 'bigint' } },
    ]);
    assert.equal(second.nextColumnId, 21);
    assert.deepEqual(await valuesOf(second, 's'), [{ x: null, y: '2' }]);
  });

  it('makes a file of each hour of acceptance', async () => {
    const job = await workshop.converter.beginWrite({
      columns: [],
      nextColumnId: 16,
      open: true,
      directory: workshop.newDirectory(),
    });
    const hour = 3_600_000;
    for (let index = 0; index < 200; index++) {
      const acceptedAt = someHour + (index % 100) * hour + index;
      await job.send([{ key: 'k', id: `${index}`, acceptedAt, body: Buffer.from(`{"a":${index}}`) }]);
    }
    const { files } = await job.seal();
    assert.equal(files.length, 100);
    assert.deepEqual(files[99], {
      hour: someHour + 99 * hour,
      path: files[99]?.path,
      bytes: files[99]?.bytes,
      rows: 2,
      rescued: 0,
      minIngestedAt: someHour + 99 * hour + 99,
      maxIngestedAt: someHour + 99 * hour + 199,
    });
  });

  it('writes no file when there is nothing to write', async () => {
    assert.deepEqual(await workshop.write([]), { columns: [], nextColumnId: 16, files: [] });
  });

  it('rescues a value of another type than the first', async () => {
    await check(
      ['1', '"x"', '2', 'true', '{"b":1}', '[1]'],
      'bigint',
      ['1', null, '2', null, null, null],
      [undefined, { a: 'x' }, undefined, { a: true }, { a: { b: 1 } }, { a: [1] }],
    );
    await check(['"x"', '1'], 'varchar', ['x', null], [undefined, { a: 1 }]);
    await check(['true', '0'], 'boolean', [true, null], [undefined, { a: 0 }]);
  });

  it('widens integers to doubles and dates to times, in a table that exists too', async () => {
    await check(['1', '1.5'], 'double', [1, 1.5]);
    await check(['"2026-01-31"', '"2026-01-31T10:00:00"'], 'timestamp', [
      '2026-01-31 00:00:00',
      '2026-01-31 10:00:00',
    ]);
    const first = await workshop.write(['{"a":1,"b":"2026-01-31","c":{"d":[1]}}']);
    const second = await workshop.write(['{"a":1.5,"b":"2026-01-31T10:00:00","c":{"d":[2,2.5]}}'], first);
    assert.deepEqual(typesOf(second), { a: 'double', b: 'timestamp', c: 'struct(d double[])' });
    assert.deepEqual(
      second.columns.map(({ id }) => id),
      first.columns.map(({ id }) => id),
    );
    assert.deepEqual(await rescuedOf(second), [null]);
  });

  it('keeps a column of large integers as it is', async () => {
    await check(
      ['9007199254740993', '1.5', '2'],
      'bigint',
      ['9007199254740993', null, '2'],
      [undefined, { a: 1.5 }],
    );
    const first = await workshop.write(fields(['9007199254740993']));
    const second = await workshop.write(fields(['0.5', '9223372036854775807', '1234567890123456789']), first);
    assert.deepEqual(typesOf(second), { a: 'bigint' });
    assert.deepEqual(await valuesOf(second, 'a'), [null, '9223372036854775807', '1234567890123456789']);
  });

  it('turns dates into text while nobody has seen them as dates', async () => {
    await check(['"2026-01-31"', '"soon"', '"2026-01-31T10:00:00Z"'], 'varchar', [
      '2026-01-31',
      'soon',
      '2026-01-31T10:00:00Z',
    ]);
    const first = await workshop.write(fields(['"2026-01-31"']));
    const second = await workshop.write(fields(['"soon"', '"2026-02-01"']), first);
    assert.deepEqual(typesOf(second), { a: 'date' });
    assert.deepEqual(await valuesOf(second, 'a'), [null, '2026-02-01']);
    assert.deepEqual(await rescuedOf(second), [{ a: 'soon' }, null]);
  });

  it('reads times with any zone as UTC, also inside structs and lists', async () => {
    await check(
      [
        '"2026-01-31T10:00:00+02:00"',
        '"2026-01-31T10:00:00-0330"',
        '"2026-01-31 10:00:00.123456"',
        '"2026-01-31T10:00:00Z"',
        '"2026-01-31"',
        '"2026-01-31T10:00"',
      ],
      'timestamp',
      [
        '2026-01-31 08:00:00',
        '2026-01-31 13:30:00',
        '2026-01-31 10:00:00.123456',
        '2026-01-31 10:00:00',
        '2026-01-31 00:00:00',
        '2026-01-31 10:00:00',
      ],
    );
    await check(['{"b":["2026-01-31T10:00:00+02:00",null]}'], 'struct(b timestamp[])', [
      { b: ['2026-01-31 08:00:00', null] },
    ]);
  });

  it('takes what is no date or time as text', async () => {
    for (const text of [
      '2026-02-30',
      '0000-01-01',
      '99999-01-01',
      '2026-13-01',
      '2026-1-1',
      '2026-01-31T24:00:00',
      '2026-01-31T23:59:60',
      '2026-01-31T10:00:00.1234567',
      '2026-01-31T10:00Z',
      '2026-01-31T10:00:00+99:00',
      '2025-02-29',
      '20260131',
      '2026-01-31x',
    ]) {
      await check([JSON.stringify(text)], 'varchar', [text]);
    }
    await check(['"2024-02-29"', '"0001-01-01"', '"9999-12-31"'], 'date', [
      '2024-02-29',
      '0001-01-01',
      '9999-12-31',
    ]);
  });

  it('holds huge numbers as nearly as it can and rescues what it cannot hold', async () => {
    await check(['-0', '0', '9223372036854775807', '-9223372036854775808'], 'bigint', [
      '0',
      '0',
      '9223372036854775807',
      '-9223372036854775808',
    ]);
    await check(['9223372036854775808', '18446744073709551616'], 'double', [2 ** 63, 2 ** 64]);
    await check(
      ['1.5', '1e400', '-1e400', '1e-400', '1E5', '-0.0'],
      'double',
      [1.5, null, null, 0, 100_000, -0],
      [undefined, { a: Number.POSITIVE_INFINITY }, { a: Number.NEGATIVE_INFINITY }, { a: 0 }],
    );
    const outcome = await workshop.write(
      fields(['12345678901234567890', '1', '1e400', '-9223372036854775809']),
    );
    assert.deepEqual(typesOf(outcome), { a: 'double' });
    assert.deepEqual(await valuesOf(outcome, 'a'), [12345678901234567000, 1, null, -9223372036854776000]);
    assert.deepEqual(await valuesOf(outcome, '_rescued'), [
      '{"a":12345678901234567890}',
      null,
      '{"a":1e400}',
      '{"a":-9223372036854775809}',
    ]);
    const wide = await workshop.write(fields(['1', '12345678901234567890']));
    assert.deepEqual(await valuesOf(wide, 'a'), [1, 12345678901234567000]);
    const digits = '9'.repeat(5000);
    const endless = await workshop.write(fields(['1', digits, `0.${digits}`, `1${'0'.repeat(300)}`]));
    assert.deepEqual(await valuesOf(endless, 'a'), [1, null, 1, 1e300]);
    assert.deepEqual(
      (await valuesOf(endless, '_rescued')).map((value) => String(value).length),
      [4, 5006, 4, 307],
    );
  });

  it('makes no column of a field that is only ever null', async () => {
    const outcome = await workshop.write([
      '{"a":null,"b":{"c":null},"d":[null]}',
      '{"a":null}',
      '{"a":null,"e":1}',
      '{}',
      '{"_key":null}',
    ]);
    assert.deepEqual(typesOf(outcome), { b: 'json', d: 'json', e: 'bigint' });
    assert.deepEqual(await valuesOf(outcome, 'b'), ['{"c":null}', null, null, null, null]);
    assert.deepEqual(await valuesOf(outcome, 'e'), [null, null, '1', null, null]);
    assert.deepEqual(await rescuedOf(outcome), [null, null, null, null, null]);
    const late = await workshop.write([
      ...Array(10).fill('{"a":null,"b":1}'),
      '{"a":"now","b":2}',
      '{"b":3,"a":null}',
    ]);
    assert.deepEqual(typesOf(late), { b: 'bigint', a: 'varchar' });
    assert.deepEqual((await valuesOf(late, 'a')).slice(9), [null, 'now', null]);
  });

  it('holds empty objects and arrays as JSON until they are more', async () => {
    await check(['{}', 'null', '{}'], 'json', ['{}', null, '{}']);
    await check(['[]', '[]'], 'json', ['[]', '[]']);
    await check(['{}', '{"b":1}', '{}'], 'struct(b bigint)', [{ b: null }, { b: '1' }, { b: null }]);
    await check(['[]', '[null]', '["x"]', '[]'], 'varchar[]', [[], [null], ['x'], []]);
    await check(['[]', '{}', '5'], 'json', ['[]', '{}', '5']);
    await check(['{"b":[],"c":{}}', '{"b":[1],"c":{"d":true}}'], 'struct(b bigint[], c struct(d boolean))', [
      { b: [], c: { d: null } },
      { b: ['1'], c: { d: true } },
    ]);
    const first = await workshop.write(fields(['[]']));
    const second = await workshop.write(fields(['["x"]', '7', '"s"']), first);
    assert.deepEqual(await valuesOf(second, 'a'), ['["x"]', '7', '"s"']);
  });

  it('holds lists of one type as lists and others as JSON', async () => {
    await check(['[1,2.5,null]'], 'double[]', [[1, 2.5, null]]);
    await check(['["2026-01-31","x"]'], 'varchar[]', [['2026-01-31', 'x']]);
    await check(['[1,"x",true]'], 'json', ['[1,"x",true]']);
    await check(['[[1],[null],null,[]]', '[[2,3]]'], 'bigint[][]', [[['1'], [null], null, []], [['2', '3']]]);
    await check(['[{"b":1},{"c":"x"},{}]', '[{"d":true}]'], 'struct(b bigint, c varchar, d boolean)[]', [
      [
        { b: '1', c: null, d: null },
        { b: null, c: 'x', d: null },
        { b: null, c: null, d: null },
      ],
      [{ b: null, c: null, d: true }],
    ]);
    await check(['[{"b":1},{"b":"x"}]'], 'struct(b json)[]', [[{ b: '1' }, { b: '"x"' }]]);
    await check(['[1]', '[1,"x",3]'], 'bigint[]', [['1'], ['1', null, '3']], [undefined, { a: [1, 'x', 3] }]);
  });

  it('drops the leaf that does not fit and rescues the whole field', async () => {
    await check(
      ['{"b":1,"c":{"d":"x"}}', '{"b":"no","c":{"d":"y","e":5}}'],
      'struct(b bigint, c struct(d varchar, e bigint))',
      [
        { b: '1', c: { d: 'x', e: null } },
        { b: null, c: { d: 'y', e: '5' } },
      ],
      [undefined, { a: { b: 'no', c: { d: 'y', e: 5 } } }],
    );
  });

  it('goes eight levels down and holds the rest as JSON', async () => {
    const nest = (levels: number, inner: string): string =>
      levels === 0 ? inner : `{"n":${nest(levels - 1, inner)}}`;
    const outcome = await workshop.write(fields([nest(20, '1'), nest(20, '"x"')]));
    assert.equal(typesOf(outcome).a, `${'struct(n '.repeat(7)}json${')'.repeat(7)}`);
    assert.deepEqual(await rescuedOf(outcome), [null, null]);
    const [row] = await query(
      `SELECT (a.n.n.n.n.n.n.n ->> '$.n.n.n.n.n.n.n.n.n.n.n.n.n') AS leaf FROM read_parquet('${outcome.files[0]?.path}') LIMIT 1`,
    );
    assert.deepEqual(row, { leaf: '1' });
  });

  it('holds what is nested without end as text in what was rescued', async () => {
    for (const depth of [201, 100_000]) {
      const deep = `${'['.repeat(depth)}${']'.repeat(depth)}`;
      const maps = `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;
      const outcome = await workshop.write(fields(['{}', deep, maps, '[]']));
      assert.deepEqual(await rescuedOf(outcome), [null, { a: deep }, { a: maps }, null]);
      assert.deepEqual(await valuesOf(outcome, 'a'), ['{}', null, null, '[]']);
    }
  });

  it('holds an object with hundreds of fields as JSON', async () => {
    const wide = JSON.stringify(
      Object.fromEntries(Array.from({ length: 501 }, (_, index) => [`f${index}`, index])),
    );
    await check([wide], 'json', [wide]);
    // A map whose keys are ever new ones becomes JSON as well, as long as nobody has seen it as a struct.
    const maps = Array.from({ length: 600 }, (_, index) => `{"user-${index}":${index}}`);
    await check(maps, 'json', maps);
    const first = await workshop.write(fields(['{"x":1}']));
    const second = await workshop.write(fields(maps), first);
    assert.equal(second.columns[0]?.type.kind, 'struct');
    assert.equal((await rescuedOf(second)).filter((value) => value !== null).length, 101);
  });

  it('lets the first of two fields that differ only in case keep the column', async () => {
    const outcome = await workshop.write([
      '{"Name":1}',
      '{"name":2}',
      '{"NAME":3,"Name":4}',
      '{"s":{"Å":1}}',
      '{"s":{"å":2,"B":1,"b":2}}',
    ]);
    assert.deepEqual(typesOf(outcome), { Name: 'bigint', s: 'struct("Å" bigint, "B" bigint)' });
    assert.deepEqual(await valuesOf(outcome, 'Name'), ['1', null, '4', null, null]);
    assert.deepEqual(await rescuedOf(outcome), [
      null,
      { name: 2 },
      { NAME: 3 },
      null,
      { s: { å: 2, B: 1, b: 2 } },
    ]);
    assert.deepEqual((await valuesOf(outcome, 's'))[4], { Å: null, B: '1' });
  });

  it('takes fields of any name, and rescues those that no column can have', async () => {
    const names = [
      'a"b',
      "it's",
      'a.b',
      'a\\b',
      'naïve',
      '名前',
      '😀',
      '__proto__',
      'constructor',
      'select',
      ' ',
      'a b',
      'tab\t',
      'a\nb',
      '1',
      'element',
      'filename',
      "');--",
      '$',
      '{x}',
      'x'.repeat(255),
    ];
    const message = `{${names.map((name, index) => `${JSON.stringify(name)}:${index}`).join(',')}}`;
    const outcome = await workshop.write([message, message, `{"s":${message}}`]);
    assert.deepEqual(await rescuedOf(outcome), [null, null, null]);
    const top = names.map((name) => quoteIdentifier(name));
    const nested = names.map((name) => `s.${quoteIdentifier(name)}`);
    for (const [key, selected] of [
      ['key-1', top],
      ['key-2', nested],
    ] as const) {
      const [row] = await query(
        `SELECT list_value(${selected.join(', ')}) AS found FROM read_parquet('${outcome.files[0]?.path}') WHERE _key = '${key}'`,
      );
      assert.deepEqual(
        row?.found,
        names.map((_, index) => String(index)),
      );
    }
    const schema = await schemaOf(outcome.files[0]?.path ?? '');
    for (const { id, name } of outcome.columns)
      assert.ok(
        schema.some((entry) => entry.id === id && entry.name === name),
        name,
      );

    const refused = [
      '',
      'y'.repeat(256),
      'nul\u0000',
      '__duckdb_field_id',
      '_key',
      '_ID',
      '_Rescued',
      '_ingested_at',
    ];
    const other = `{${refused.map((name, index) => `${JSON.stringify(name)}:${index}`).join(',')}}`;
    const rescued = await workshop.write([other, `{"s":${other}}`]);
    assert.deepEqual(await rescuedOf(rescued), [JSON.parse(other), { s: JSON.parse(other) }]);
    assert.deepEqual(await valuesOf(rescued, '_key'), ['key-0', 'key-1']);
  });

  it('spells out half a surrogate pair, which no text can hold', async () => {
    const outcome = await workshop.write([
      '{"a":"\\ud83d\\ude00","b":"\\u0041\\u0000\\u00e9"}',
      '{"a":"x\\ud800","b":"\\\\ud800"}',
      '{"a":"ok","b":"\\udc00\\ud83d\\ude00\\n"}',
      '{"\\udead":1,"\\ud800x":null,"c":{"\\ud800":null,"d":1},"e":[1,"\\ud800"]}',
    ]);
    assert.deepEqual(await valuesOf(outcome, 'a'), ['😀', null, 'ok', null]);
    assert.deepEqual(await valuesOf(outcome, 'b'), ['A\u0000é', '\\ud800', null, null]);
    assert.deepEqual(await valuesOf(outcome, 'c'), [null, null, null, { d: '1' }]);
    assert.deepEqual(await rescuedOf(outcome), [
      null,
      { a: 'x\\ud800' },
      { b: '\\udc00😀\n' },
      { '\\udead': 1, e: [1, '\\ud800'] },
    ]);
  });

  it('lets the last of two fields of one name count', async () => {
    const outcome = await workshop.write([
      '{"a":1,"b":{"c":1}}',
      '{"a":1,"a":2,"b":{"c":"x","c":3}}',
      '{"a":1,"\\u0061":null}',
      '{"a":5,"a":"x"}',
      '{"b":{"d":[{"e":{"f":1,"f":2}}]}}',
    ]);
    assert.deepEqual(await valuesOf(outcome, 'a'), ['1', '2', null, null, null]);
    assert.deepEqual(await valuesOf(outcome, 'b'), [
      { c: '1', d: null },
      { c: '3', d: null },
      null,
      null,
      { c: null, d: [{ e: { f: '2' } }] },
    ]);
    assert.deepEqual(await rescuedOf(outcome), [null, null, null, { a: 'x' }, null]);
  });

  it('takes messages on several lines', async () => {
    const message = { a: 1, b: { c: [1, 2], d: 'x' }, e: [{ f: null }, { f: 'two\nlines' }], g: {} };
    const pretty = JSON.stringify(message, null, 2);
    const windows = `\r\n ${pretty.replaceAll('\n', '\r\n')}\t\n`;
    const outcome = await workshop.write([pretty, pretty, windows, `${pretty}\n\n`, JSON.stringify(message)]);
    const [one, ...others] = await rowsOf(outcome);
    for (const other of others)
      assert.deepEqual(
        { ...other, _key: '', _id: '', _ingested_at: '' },
        { ...one, _key: '', _id: '', _ingested_at: '' },
      );
    assert.deepEqual(one?.e, [{ f: null }, { f: 'two\nlines' }]);
    assert.deepEqual(await rescuedOf(outcome), [null, null, null, null, null]);
  });

  it('rescues what is no JSON object as a whole', async () => {
    const outcome = await workshop.write([
      '{"a":1}',
      'not json',
      '[1,2]',
      '',
      '{"a":',
      '"\\ud800"',
      '{"a":1}x',
      Buffer.from([0x7b, 0xff, 0x7d]),
    ]);
    assert.deepEqual(await rescuedOf(outcome), [
      null,
      'not json',
      [1, 2],
      '',
      '{"a":',
      '\\ud800',
      '{"a":1}x',
      '{\ufffd}',
    ]);
    assert.equal(outcome.files[0]?.rescued, 7);
  });

  it('rescues whole messages that the engine refuses, and keeps the others', async () => {
    const table = await workshop.write(['{"a":[],"n":1}']);
    const good = Array.from({ length: 50 }, (_, index) => `{"a":[${index}],"n":${index}}`);
    // What follows looks like JSON to the quick look and is none.
    const messages = [
      ...good,
      '{"n":7,"a":[1 2]}',
      ...good,
      '{"a":{foo},"n":8,"\\u0078":"y"}',
      '{"n":"z","a":[}]}',
    ];
    const outcome = await workshop.write(messages, table);
    const rescued = await rescuedOf(outcome);
    assert.deepEqual(
      rescued.flatMap((value, index) => (value === null ? [] : [[index, value]])),
      [
        [50, '{"n":7,"a":[1 2]}'],
        [101, '{"a":{foo},"n":8,"\\u0078":"y"}'],
        [102, '{"n":"z","a":[}]}'],
      ],
    );
    assert.deepEqual((await valuesOf(outcome, 'n')).filter((value) => value !== null).length, 100);
    assert.equal(outcome.files[0]?.rescued, 3);
    assert.equal(outcome.files[0]?.rows, 103);
  });

  it('writes large jobs in several files, all with the columns of the last', async () => {
    const job = await workshop.converter.beginWrite({
      columns: [],
      nextColumnId: 16,
      open: true,
      directory: workshop.newDirectory(),
    });
    const filler = 'x'.repeat(10_000);
    const total = 8000;
    for (let start = 0; start < total; start += 1000) {
      await job.send(
        Array.from({ length: 1000 }, (_, index) => ({
          key: 'k',
          id: `${start + index}`,
          acceptedAt: someHour + start + index,
          body: Buffer.from(
            `{"n":${start + index},"filler":"${filler}"${start + index === total - 1 ? ',"late":1.5' : ''}}`,
          ),
        })),
      );
    }
    const outcome = await job.seal();
    assert.ok(outcome.files.length > 1);
    assert.equal(
      outcome.files.reduce((rows, file) => rows + file.rows, 0),
      total,
    );
    for (const { path } of outcome.files) {
      const schema = await schemaOf(path);
      assert.ok(schema.some(({ name, id }) => name === 'late' && id === 18));
    }
    const files = outcome.files.map(({ path }) => `'${path}'`).join(', ');
    const [row] = await query(
      `SELECT count(DISTINCT n) AS n, count(late) AS late, sum(length(filler)) AS filler FROM read_parquet([${files}])`,
    );
    assert.deepEqual(row, { n: String(total), late: '1', filler: String(total * filler.length) });
  });

  it('mends bytes that are no text', async () => {
    const bytes = Buffer.concat([Buffer.from('{"a":"x'), Buffer.from([0xff, 0xc0]), Buffer.from('"}')]);
    const outcome = await workshop.write(['{"a":"fine"}', bytes, '{"a":"é"}']);
    assert.deepEqual(await valuesOf(outcome, 'a'), ['fine', 'x\ufffd\ufffd', 'é']);
  });

  it('holds keys and ids of any text', async () => {
    const job = await workshop.converter.beginWrite({
      columns: [],
      nextColumnId: 16,
      open: true,
      directory: workshop.newDirectory(),
    });
    const texts = [
      '"quoted"',
      'back\\slash',
      'line\nbreak',
      '名前 😀',
      '\u0000',
      '\u2028',
      ' ',
      'x'.repeat(1024),
    ];
    await job.send(
      texts.map((text, index) => ({
        key: text,
        id: text,
        acceptedAt: someHour + index,
        body: Buffer.from('{"a":1}'),
      })),
    );
    const outcome = await job.seal();
    assert.deepEqual(await valuesOf(outcome, '_key'), texts);
    assert.deepEqual(await valuesOf(outcome, '_id'), texts);
  });

  it('keeps to a schema that was uploaded', async () => {
    const columns: Column[] = [
      { id: 16, name: 'n', type: { kind: 'bigint' } },
      { id: 17, name: 'd', type: { kind: 'date' } },
      {
        id: 18,
        name: 's',
        type: { kind: 'struct', fields: [{ id: 19, name: 'x', type: { kind: 'double' } }] },
      },
      {
        id: 20,
        name: 'never',
        type: { kind: 'list', element: { id: 21, name: 'element', type: { kind: 'timestamp' } } },
      },
    ];
    const messages = [
      '{"n":1,"d":"2026-01-31","s":{"x":1}}',
      '{"n":1.5,"d":"2026-01-31T10:00:00Z","s":{"x":2,"y":1}}',
      '{"other":1,"none":null}',
    ];
    const outcome = await workshop.write(messages, { columns, nextColumnId: 22 }, false);
    assert.deepEqual(outcome.columns, columns);
    assert.equal(outcome.nextColumnId, 22);
    assert.deepEqual(await rescuedOf(outcome), [
      null,
      { n: 1.5, d: '2026-01-31T10:00:00Z', s: { x: 2, y: 1 } },
      { other: 1 },
    ]);
    assert.deepEqual(await valuesOf(outcome, 's'), [{ x: 1 }, { x: 2 }, null]);
    assert.deepEqual(await valuesOf(outcome, 'never'), [null, null, null]);
  });

  it('takes thousands of distinct fields', async () => {
    const messages = Array.from({ length: 1000 }, (_, index) =>
      JSON.stringify(
        Object.fromEntries(
          Array.from({ length: 5 }, (__, field) => [
            `field_${index * 5 + field}`,
            field === 0 ? `text ${index}` : index,
          ]),
        ),
      ),
    );
    const outcome = await workshop.write(messages);
    assert.equal(outcome.columns.length, 5000);
    assert.equal(outcome.files[0]?.rescued, 0);
    const [row] = await query(
      `SELECT count(field_0) AS a, any_value(field_4995) AS b, max(field_4999) AS c FROM read_parquet('${outcome.files[0]?.path}')`,
    );
    assert.deepEqual(row, { a: '1', b: 'text 999', c: '999' });
  });
});

describe('a converter with room for few columns', { timeout: 60_000 }, () => {
  it('rescues the fields that there is no room for', async () => {
    const workshop = new Workshop({ columnLimit: 3 });
    try {
      const outcome: WriteOutcome = await workshop.write([
        '{"a":1,"b":{"c":1},"d":1}',
        '{"b":{"x":2}}',
        '{"e":[1]}',
      ]);
      assert.deepEqual(typesOf(outcome), { a: 'bigint', b: 'struct(c bigint)' });
      assert.deepEqual(await rescuedOf(outcome), [{ d: 1 }, { b: { x: 2 } }, { e: [1] }]);
    } finally {
      await workshop.close();
    }
  });
});
