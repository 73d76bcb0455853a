import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type Column,
  type ColumnType,
  countColumns,
  fieldIdsSql,
  isColumnName,
  isSystemName,
  readColumns,
  sameColumns,
  sameType,
  sqlType,
  typeName,
  widens,
} from './columns.ts';

const bigint: ColumnType = { kind: 'bigint' };
const large: ColumnType = { kind: 'bigint', large: true };
const double: ColumnType = { kind: 'double' };
const struct = (...fields: Column[]): ColumnType => ({ kind: 'struct', fields });
const list = (id: number, type: ColumnType): ColumnType => ({
  kind: 'list',
  element: { id, name: 'element', type },
});
const column = (id: number, name: string, type: ColumnType): Column => ({ id, name, type });

describe('columns', () => {
  const nested = struct(column(17, 'x', bigint), column(18, 'a"b', list(19, { kind: 'json' })));

  it('are spelled for the engine and for people', () => {
    assert.equal(sqlType(nested), 'STRUCT("x" BIGINT, "a""b" JSON[])');
    assert.equal(typeName(nested), 'struct(x bigint, "a""b" json[])');
    assert.equal(typeName(list(1, list(2, { kind: 'timestamp' }))), 'timestamp[][]');
  });

  it('have their ids in the files, nested ones too', () => {
    assert.equal(
      fieldIdsSql([column(16, "it's", nested), column(20, 'y', double)]),
      `{'it''s': {__duckdb_field_id: 16, 'x': 17, 'a"b': {__duckdb_field_id: 18, 'element': 19}}, 'y': 20}`,
    );
    assert.equal(countColumns([column(16, 's', nested), column(20, 'y', double)]), 5);
  });

  it('widen where nothing is lost', () => {
    assert.ok(widens(bigint, double));
    assert.ok(!widens(large, double));
    assert.ok(!widens(double, bigint));
    assert.ok(widens({ kind: 'date' }, { kind: 'timestamp' }));
    assert.ok(!widens({ kind: 'date' }, { kind: 'varchar' }));
    assert.ok(
      widens(struct(column(17, 'x', bigint)), struct(column(17, 'x', double), column(18, 'y', double))),
    );
    assert.ok(!widens(struct(column(17, 'x', bigint)), struct(column(18, 'x', bigint))));
    assert.ok(widens(list(17, bigint), list(17, double)));
    assert.ok(!widens(list(17, bigint), bigint));
  });

  it('are the same when they are stored alike, and equal when nothing at all differs', () => {
    assert.ok(sameType(bigint, large));
    assert.ok(sameType(nested, structuredClone(nested)));
    assert.ok(!sameType(list(17, bigint), list(18, bigint)));
    assert.ok(!sameType(nested, bigint));
    assert.ok(!sameColumns([column(16, 'a', bigint)], [column(16, 'a', large)]));
    assert.ok(sameColumns([column(16, 'a', nested)], [column(16, 'a', structuredClone(nested))]));
    assert.ok(!sameColumns([column(16, 'a', nested)], []));
  });

  it('have names that the engine can tell apart', () => {
    for (const name of ['a', ' ', 'naïve', 'a"b', '__proto__', 'x'.repeat(255)])
      assert.ok(isColumnName(name), name);
    for (const name of ['', 'a\0', '\ud800', '__DuckDB_field_id', 'x'.repeat(256)])
      assert.ok(!isColumnName(name), name);
    assert.ok(isSystemName('_Key'));
    assert.ok(!isSystemName('key'));
  });

  it('come out of JSON as they went in', () => {
    const columns = [column(16, 's', nested), column(20, 'n', large)];
    assert.deepEqual(readColumns(JSON.parse(JSON.stringify(columns))), columns);
    for (const wrong of [{}, [{}], [{ id: 1, name: 'a' }], [{ id: 1, name: 'a', type: { kind: 'blob' } }]]) {
      assert.throws(() => readColumns(wrong), TypeError);
    }
  });
});
