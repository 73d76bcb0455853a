import assert from 'node:assert/strict';
import { it } from 'node:test';
import { DuckDBInstance } from '@duckdb/node-api';
import { type Column, typeName as lakeTypeName } from '../../../lake/columns.ts';
import { sqlTypeName, typeName } from './type-names.ts';

it('the names of types in statements make a table that takes the values', async () => {
  const connection = await (await DuckDBInstance.create(':memory:')).connect();
  for (const [value, name] of [
    ['row(1, 2)', 'struct("1" integer, "2" integer)'],
    ["[row('x')]", 'struct("1" varchar)[]'],
    ["{'k': row(1), 'l': 2}", 'struct("k" struct("1" integer), "l" integer)'],
    ['map {row(1): 2}', 'map(struct("1" integer), integer)'],
    ["{'odd \"name': [1, 2]::INTEGER[2]}", 'struct("odd ""name" integer[2])'],
    ["'a'::ENUM('a', 'it''s')", "enum('a', 'it''s')"],
    ["'[1]'::JSON", 'json'],
  ] as const) {
    const found = (await connection.runAndReadAll(`select ${value}`)).columnType(0);
    assert.equal(sqlTypeName(found), name);
    await connection.run(`create or replace table taken (value ${name})`);
    await connection.run(`insert into taken select ${value}`);
  }
});

it('the types of results are told like those of tables, with quotes only where a name needs them', async () => {
  const column = (name: string, kind: 'bigint' | 'list'): Column => {
    const element: Column = { id: 2, name: 'element', type: { kind: 'bigint' } };
    return { id: 1, name, type: kind === 'list' ? { kind, element } : { kind } };
  };
  const names = ['a', 'a_1', '_b', 'Name', '1', 'odd "name', 'é'];
  const connection = await (await DuckDBInstance.create(':memory:')).connect();
  const listed = names.map((name) => `"${name.replaceAll('"', '""')}" bigint`).join(', ');
  await connection.run(`create table t (value struct(${listed}, list bigint[]))`);
  const found = (await connection.runAndReadAll('select value from t')).columnType(0);
  assert.equal(
    typeName(found),
    'struct(a bigint, a_1 bigint, _b bigint, "Name" bigint, "1" bigint, "odd ""name" bigint, "é" bigint, list bigint[])',
  );
  const fields = [...names.map((name) => column(name, 'bigint')), column('list', 'list')];
  assert.equal(typeName(found), lakeTypeName({ kind: 'struct', fields }));
});
