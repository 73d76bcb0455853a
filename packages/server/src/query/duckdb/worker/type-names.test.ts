import assert from 'node:assert/strict';
import { it } from 'node:test';
import { DuckDBInstance } from '@duckdb/node-api';
import { typeName } from './type-names.ts';

it('the names of types make a table that takes the values', async () => {
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
    assert.equal(typeName(found), name);
    await connection.run(`create or replace table taken (value ${name})`);
    await connection.run(`insert into taken select ${value}`);
  }
});
