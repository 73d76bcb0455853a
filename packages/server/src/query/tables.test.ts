import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { Statement, TableUse } from './engine.ts';
import { meant, namesUsed, refusedTable, similarNames } from './tables.ts';

function statement(...names: (string | Partial<TableUse>)[]): Statement {
  const tables = names.map((given) => ({
    catalog: '',
    schema: '',
    name: '',
    position: 0,
    ...(typeof given === 'string' ? { name: given } : given),
  }));
  return {
    kind: 'statement',
    tables,
    commonNames: ['common.csv'],
    listsTables: false,
    namesIngestedAt: false,
  };
}

it('a name means the topic that is written so, or those that differ in case', () => {
  assert.deepEqual(meant('Clicks', ['clicks', 'Clicks']), ['Clicks']);
  assert.deepEqual(meant('CLICKS', ['clicks', 'Clicks', 'other']), ['Clicks', 'clicks']);
  assert.deepEqual(meant('nothing', ['clicks']), []);
});

it('tables of the organization are those without a schema, or under its name', () => {
  const uses = [
    'a',
    { schema: 'main', name: 'b' },
    { schema: 'Acme', name: 'c' },
    { catalog: 'acme', schema: 'main', name: 'd' },
    { schema: 'other', name: 'e' },
    { catalog: 'other', schema: 'main', name: 'f' },
  ];
  assert.deepEqual(namesUsed(statement(...uses), 'acme'), ['a', 'b', 'c', 'd']);
});

it('files, tables of the engine and other databases are refused, unless a topic has that name', () => {
  for (const name of [
    '/etc/passwd',
    'x.parquet',
    'a/b',
    'data.csv.gz',
    'https://x',
    'pg_settings',
    'duckdb_views',
    'sqlite_master',
  ]) {
    assert.ok(refusedTable(statement(name), 'acme', []), name);
    assert.equal(refusedTable(statement(name), 'acme', [name]), undefined, name);
  }
  assert.ok(refusedTable(statement({ schema: 'pg_catalog', name: 'pg_class' }), 'acme', ['pg_class']));
  assert.ok(
    refusedTable(statement({ catalog: 'other', schema: 'main', name: 'clicks' }), 'acme', ['clicks']),
  );
  for (const name of ['clicks', 'odd.name', 'common.csv', 'select', '_state', 'no such']) {
    assert.equal(refusedTable(statement(name), 'acme', []), undefined, name);
  }
  assert.equal(
    refusedTable(statement({ schema: 'information_schema', name: 'tables' }), 'acme', []),
    undefined,
  );
  assert.ok(refusedTable(statement({ schema: 'Information_Schema', name: 'Views' }), 'acme', []));
  assert.ok(refusedTable(statement({ schema: 'system', name: 'duckdb_views' }), 'system', ['duckdb_views']));
});

it('similar names are suggested, the closest first', () => {
  assert.deepEqual(similarNames('clik', ['orders', 'clicks', 'Click', 'x']), ['Click', 'clicks']);
  assert.deepEqual(similarNames('zzz', ['orders', 'clicks']), []);
  const names = Array.from({ length: 1000 }, (_value, index) => `${index}`.padEnd(128, 'x'));
  const startedAt = performance.now();
  assert.deepEqual(similarNames('y'.repeat(250_000), names), []);
  assert.ok(performance.now() - startedAt < 1000, 'also of a name without end');
});
