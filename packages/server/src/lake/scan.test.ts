import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import {
  type Column,
  type ColumnType,
  fieldIdsSql,
  quoteIdentifier,
  quoteLiteral,
  sqlType,
  systemColumns,
} from './columns.ts';
import { type ScannedFile, scanSql } from './scan.ts';

const bigint: ColumnType = { kind: 'bigint' };
const double: ColumnType = { kind: 'double' };
const varchar: ColumnType = { kind: 'varchar' };
const timestamp: ColumnType = { kind: 'timestamp' };
const date: ColumnType = { kind: 'date' };
const json: ColumnType = { kind: 'json' };
const boolean: ColumnType = { kind: 'boolean' };
const struct = (...fields: Column[]): ColumnType => ({ kind: 'struct', fields });
const list = (id: number, type: ColumnType): ColumnType => ({
  kind: 'list',
  element: { id, name: 'element', type },
});
const column = (id: number, name: string, type: ColumnType): Column => ({ id, name, type });

/** A row of a file: SQL for each column, and what was rescued. */
interface Row {
  readonly values: readonly string[];
  readonly rescued?: object;
}

describe('reading a table from its files', { timeout: 60_000 }, () => {
  let directory: string;
  let instance: DuckDBInstance;
  let connection: DuckDBConnection;
  let count = 0;
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'millrace-scan-'));
    instance = await DuckDBInstance.create(':memory:');
    connection = await instance.connect();
  });
  after(async () => {
    connection.closeSync();
    instance.closeSync();
    await rm(directory, { recursive: true });
  });

  async function write(columns: readonly Column[], ...rows: Row[]): Promise<ScannedFile> {
    count += 1;
    // As in the lake: folders that look like columns must not become some.
    const path = join(directory, `year=2026-${count}.parquet`);
    const selects = rows.map(({ values, rescued }, index) => {
      const own = columns.map(
        ({ name, type }, place) =>
          `CAST(${values[place] ?? 'NULL'} AS ${sqlType(type)}) AS ${quoteIdentifier(name)}`,
      );
      const kept = rescued === undefined ? 'NULL' : quoteLiteral(JSON.stringify(rescued));
      const system = [
        `'k${count}' AS _key`,
        `'${count}-${index}' AS _id`,
        `TIMESTAMP '2026-11-15 09:00:00' AS _ingested_at`,
        `CAST(${kept} AS JSON) AS _rescued`,
      ];
      return `SELECT ${[...own, ...system].join(', ')}`;
    });
    const ids = fieldIdsSql([...columns, ...systemColumns]);
    await connection.run(
      `COPY (${selects.join(' UNION ALL ')}) TO ${quoteLiteral(path)} (FORMAT parquet, FIELD_IDS ${ids})`,
    );
    return { path, columns, hasRescued: rows.some(({ rescued }) => rescued !== undefined) };
  }

  async function read(columns: readonly Column[], ...files: ScannedFile[]) {
    const reader = await connection.runAndReadAll(scanSql(columns, files));
    const names = [...columns.map(({ name }) => name), '_key', '_id', '_ingested_at', '_rescued'];
    assert.deepEqual(reader.columnNames(), names);
    assert.deepEqual(
      reader.columnTypes().map((type) => type.toString()),
      (await connection.runAndReadAll(scanSql(columns, []))).columnTypes().map((type) => type.toString()),
    );
    return reader.getRowObjectsJson();
  }

  it('of no files is empty and has the right types', async () => {
    const columns = [column(16, 'a', bigint), column(17, 's', struct(column(18, 'x', list(19, json))))];
    const reader = await connection.runAndReadAll(scanSql(columns, []));
    assert.equal(reader.currentRowCount, 0);
    assert.deepEqual(
      reader.columnTypes().map((type) => type.toString()),
      ['BIGINT', 'STRUCT("x" JSON[])', 'VARCHAR', 'VARCHAR', 'TIMESTAMP', 'JSON'].map((type) =>
        type.replaceAll('JSON', 'VARCHAR'),
      ),
    );
  });

  it('finds columns by their ids, also under a new name, and lets missing ones be null', async () => {
    const one = await write([column(16, 'a', bigint), column(17, 'b', varchar)], { values: ['1', "'x'"] });
    const other = await write([column(16, 'a', bigint)], { values: ['2'] });
    const rows = await read([column(17, 'renamed', varchar), column(16, 'a', bigint)], one, other);
    assert.deepEqual(
      rows.map((row) => [row.renamed, row.a, row._key]),
      [
        ['x', '1', `k${count - 1}`],
        [null, '2', `k${count}`],
      ],
    );
  });

  it('reads narrower types as wider ones, also inside', async () => {
    const narrow = await write(
      [
        column(16, 'n', bigint),
        column(17, 'd', date),
        column(18, 's', struct(column(19, 'x', bigint))),
        column(20, 'l', list(21, struct(column(22, 'y', date)))),
      ],
      { values: ['7', "'2026-01-02'", '{x: 5}', "[{y: DATE '2026-01-03'}]"] },
    );
    const wide = [
      column(16, 'n', double),
      column(17, 'd', timestamp),
      column(18, 's', struct(column(19, 'x', double), column(23, 'z', varchar))),
      column(20, 'l', list(21, struct(column(22, 'y', timestamp), column(24, 'w', bigint)))),
    ];
    const [row] = await read(wide, narrow);
    assert.equal(row?.n, 7);
    assert.equal(row?.d, '2026-01-02 00:00:00');
    assert.deepEqual(row?.s, { x: 5, z: null });
    assert.deepEqual(row?.l, [{ y: '2026-01-03 00:00:00', w: null }]);
  });

  const casts: [string, ColumnType, string[], ColumnType, unknown[]][] = [
    [
      'text as integers',
      varchar,
      ["'5'", "'x'", "'1.5'", "'9007199254740993'", "''"],
      bigint,
      ['5', null, null, '9007199254740993', null],
    ],
    ['text as doubles', varchar, ["'1.5'", "'x'"], double, [1.5, null]],
    ['text as booleans', varchar, ["'true'", "'x'"], boolean, [true, null]],
    [
      'text as timestamps in UTC',
      varchar,
      [
        "'2026-01-01T10:00:00+02:00'",
        "'2026-01-01T10:00:00Z'",
        "'2026-01-01 10:00'",
        "'2026-01-01'",
        "'2026-13-01'",
      ],
      timestamp,
      ['2026-01-01 08:00:00', '2026-01-01 10:00:00', '2026-01-01 10:00:00', '2026-01-01 00:00:00', null],
    ],
    ['text as dates', varchar, ["'2026-01-01'", "'2026-02-30'"], date, ['2026-01-01', null]],
    ['text as structs', varchar, ["'x'"], struct(column(30, 'x', bigint)), [null]],
    ['text as JSON', varchar, ["'x\"'"], json, ['"x\\""']],
    ['integers as text', bigint, ['5'], varchar, ['5']],
    ['doubles as integers', double, ['5', '5.5', '1e300', "'nan'"], bigint, ['5', null, null, null]],
    ['integers as timestamps', bigint, ['5'], timestamp, [null]],
    ['booleans as integers', boolean, ['true'], bigint, ['1']],
    ['timestamps as text', timestamp, ["'2026-01-01 10:00:00.5'"], varchar, ['2026-01-01T10:00:00.500000Z']],
    ['timestamps as dates', timestamp, ["'2026-01-01 10:00:00'"], date, ['2026-01-01']],
    ['structs as JSON', struct(column(30, 'x', bigint)), ['{x: 1}'], json, ['{"x":1}']],
    ['structs as text', struct(column(30, 'x', bigint)), ['{x: 1}'], varchar, ['{"x":1}']],
    ['structs as lists', struct(column(30, 'x', bigint)), ['{x: 1}'], list(31, bigint), [null]],
    [
      'structs as structs of other fields',
      struct(column(30, 'x', varchar), column(31, 'gone', bigint)),
      ["{x: '5', gone: 1}", "{x: 'no', gone: 2}"],
      struct(column(32, 'x', bigint), column(33, 'new', varchar)),
      [
        { x: '5', new: null },
        { x: null, new: null },
      ],
    ],
    ['lists of other elements', list(30, varchar), ["['1', 'x']"], list(31, bigint), [['1', null]]],
    ['JSON as anything', json, ["'5'", '\'"6"\'', "'{}'", "'null'"], bigint, ['5', '6', null, null]],
    ['JSON as text', json, ['\'"x"\'', '\'{"a":1}\'', "'null'"], varchar, ['x', '{"a":1}', null]],
    [
      'JSON as structs',
      json,
      ['\'{"x":1,"y":2}\'', "'5'", "'[]'"],
      struct(column(31, 'x', bigint)),
      [{ x: '1' }, null, null],
    ],
  ];
  for (const [what, from, values, to, expected] of casts) {
    it(`reads ${what} where that can be done, and has null where it cannot`, async () => {
      const file = await write([column(16, 'a', from)], ...values.map((value) => ({ values: [value] })));
      // Not a widening, so the table's column has an id of its own and the old one is found by name.
      const rows = await read([column(40, 'A', to)], file);
      assert.deepEqual(
        rows.map((row) => row.A),
        expected,
      );
      const kept = await read([column(16, 'a', to)], file);
      assert.deepEqual(
        kept.map((row) => row.a),
        expected,
      );
    });
  }

  it('takes from what was rescued what the column could not hold when the file was written', async () => {
    const old = [column(16, 'n', bigint), column(17, 's', struct(column(18, 'x', bigint)))];
    const file = await write(
      old,
      { values: ['1', '{x: 1}'] },
      { values: ['NULL', '{x: NULL}'], rescued: { n: 1.5, s: { x: 'y' }, 'a/b~"\'': true, 漢: [1] } },
      { values: ['NULL', 'NULL'], rescued: { n: 'text', s: 5 } },
    );
    const table = [
      column(16, 'n', double),
      column(20, 's', struct(column(21, 'x', varchar))),
      column(22, 'a/b~"\'', boolean),
      column(23, '漢', list(24, bigint)),
    ];
    const rows = await read(table, file);
    assert.deepEqual(
      rows.map((row) => table.map(({ name }) => row[name])),
      [
        [1, { x: '1' }, null, null],
        [1.5, { x: 'y' }, true, ['1']],
        [null, null, null, null],
      ],
    );
    assert.equal(rows[2]?._rescued, '{"n":"text","s":5}');
  });

  it('stands what is rescued and no JSON to the engine', async () => {
    const file = await write([column(16, 'a', bigint)], { values: ['NULL'], rescued: { a: 1 } });
    const path = join(directory, 'surrogate.parquet');
    const rescued = quoteLiteral('{"b":"\\ud800"}');
    await connection.run(
      `COPY (SELECT 1::BIGINT AS a, 'k' AS _key, 'i' AS _id, TIMESTAMP '2026-11-15' AS _ingested_at, ${rescued} AS _rescued)
       TO ${quoteLiteral(path)} (FORMAT parquet, FIELD_IDS ${fieldIdsSql([column(16, 'a', bigint), ...systemColumns])})`,
    );
    const rows = await read([column(17, 'b', varchar)], { ...file, path });
    assert.equal(rows[0]?.b, null);
  });

  it('reads files of many layouts at once, each row once', async () => {
    const files: ScannedFile[] = [];
    for (let index = 0; index < 20; index += 1) {
      const type = [bigint, varchar, double, json][index % 4] ?? bigint;
      const columns = [column(16 + index, 'a', type), column(100 + index, `c${index}`, bigint)];
      files.push(await write(columns, { values: ["'5'", String(index)] }));
    }
    const rows = await read([column(200, 'a', bigint), column(104, 'c4', bigint)], ...files);
    assert.equal(new Set(rows.map((row) => row._id)).size, 20);
    assert.ok(rows.every((row) => row.a === '5'));
    assert.deepEqual(
      rows.filter((row) => row.c4 !== null).map((row) => row.c4),
      ['4'],
    );
  });
});
