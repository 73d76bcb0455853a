import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { Inspection } from './inspect.ts';
import { startParser } from './parser.ts';

describe('what a text is', () => {
  let inspect: (sql: string) => Promise<Inspection>;
  before(async () => {
    inspect = await startParser();
  });

  async function reasonOf(sql: string): Promise<string> {
    const found = await inspect(sql);
    assert.equal(found.kind, 'refused', sql);
    return found.kind === 'refused' ? found.reason : '';
  }

  it('is told with the tables it uses, also deep inside', async () => {
    const found = await inspect(
      `WITH c AS (SELECT * FROM a) SELECT * FROM c JOIN "B b" USING (x) WHERE EXISTS (SELECT 1 FROM s.d WHERE _Ingested_At > now())`,
    );
    assert.equal(found.kind, 'statement');
    if (found.kind !== 'statement') return;
    assert.deepEqual(found.tables.map(({ name }) => name).sort(), ['B b', 'a', 'c', 'd']);
    assert.equal(found.tables.find(({ name }) => name === 'd')?.schema, 's');
    assert.deepEqual(found.commonNames, ['c']);
    assert.equal(found.namesIngestedAt, true);
    assert.equal(found.listsTables, false);
  });

  it('may have numbers that are too large for a number, and texts that look like them', async () => {
    for (const sql of [
      'SELECT 1e400, -1e999 FROM t',
      `SELECT ':Infinity,' AS "[NaN", 1e500 FROM t WHERE x = '\\",-Infinity'`,
      `SELECT '${'\\"'.repeat(50_000)}', 1e500 FROM t`,
    ]) {
      const found = await inspect(sql);
      assert.equal(found.kind, 'statement', sql.slice(0, 100));
      if (found.kind === 'statement') assert.deepEqual(found.tables[0]?.name, 't');
    }
    assert.match(await reasonOf(`SELECT 1e400 FROM read_text(':Infinity"')`), /read_text/);
  });

  it('is a statement that reads, whatever words it has', async () => {
    for (const sql of [
      'SELECT 1',
      'FROM x',
      'TABLE x',
      'VALUES (1)',
      '(SELECT 1)',
      'SELECT 1;',
      '-- a note\nSELECT "update", \'DROP TABLE x\' AS "delete" FROM "insert"',
      'DESCRIBE x',
      'SUMMARIZE x',
      'SHOW TABLES',
      'EXPLAIN SELECT 1',
      'explain analyze\nSELECT 1',
      '-- why\n EXPLAIN (FORMAT json) SELECT 1',
      'SELECT * FROM range(3), generate_series(1, 2), unnest([1])',
      "SELECT * FROM x, json_each(x.j), json_tree('[]')",
      'SELECT * FROM x PIVOT (sum(a) FOR b IN (1, 2))',
      'PIVOT x ON b IN (1, 2) USING sum(a)',
      'SELECT count(*) FILTER (a > 1), sum(b) OVER (PARTITION BY c) FROM x QUALIFY row_number() OVER () = 1',
    ]) {
      assert.equal((await inspect(sql)).kind, 'statement', sql);
    }
  });

  it('is not taken for the EXPLAIN that only seems to stand in front', async () => {
    // A comment ends at a carriage return, so the statement begins before what looks like EXPLAIN.
    for (const start of ["SELECT * FROM read_text('/etc/passwd')", "COPY (SELECT 1) TO 'x.csv'"]) {
      await reasonOf(`--\r${start} /*\nEXPLAIN SELECT 1 -- */`);
    }
    assert.equal((await inspect('-- a note\rEXPLAIN SELECT 1')).kind, 'statement');
    assert.equal((await inspect('EXPLAIN (ANALYZE , FORMAT json) SELECT 1')).kind, 'statement');
    const startedAt = performance.now();
    await reasonOf(`EXPLAIN (${'analyze  '.repeat(900)}x`);
    assert.ok(performance.now() - startedAt < 2000);
  });

  it('asks which tables there are when it says so', async () => {
    for (const sql of ['SHOW TABLES', 'DESCRIBE', 'SELECT * FROM information_schema.tables']) {
      const found = await inspect(sql);
      assert.ok(found.kind === 'statement' && found.listsTables, sql);
    }
  });

  it('is refused with a reason when it is anything else', async () => {
    assert.match(await reasonOf('DROP TABLE x'), /Only one statement that reads/);
    assert.match(await reasonOf('EXPLAIN DROP TABLE x'), /Only one statement that reads/);
    assert.match(await reasonOf('EXPLAIN EXPLAIN SELECT 1'), /Only one statement that reads/);
    assert.match(
      await reasonOf("/* /* */ EXPLAIN SELECT 1 --*/ COPY x TO 'y'"),
      /Only one statement that reads/,
    );
    assert.match(await reasonOf('EXPLAIN SELECT 1; DROP TABLE x'), /Only one statement that reads/);
    assert.match(await reasonOf('SELECT 1; SELECT 2'), /2 statements/);
    assert.match(await reasonOf(' -- nothing'), /no statement/);
    assert.match(await reasonOf('SELECT $1'), /Parameters/);
    assert.match(await reasonOf("SELECT * FROM read_csv('x')"), /The function read_csv cannot be read from/);
    assert.match(await reasonOf("SELECT * FROM system.main.read_csv('x')"), /read_csv/);
    assert.match(await reasonOf("SELECT upper(getenv('HOME'))"), /The function getenv cannot be used/);
    assert.match(await reasonOf("SELECT * FROM range(getvariable('x'))"), /getvariable/);
    assert.match(await reasonOf('SHOW DATABASES'), /SHOW TABLES can/);
    assert.match(await reasonOf('SHOW TABLES FROM main'), /^This form of SHOW cannot/);
    assert.match(await reasonOf(`SELECT ${'('.repeat(100_000)}`), /too complex/);
  });

  it('is told to name its values when it is a PIVOT without them', async () => {
    for (const sql of [
      'PIVOT x ON b USING sum(a)',
      'pivot_wider x ON b',
      'WITH p AS (PIVOT x ON b USING sum(a)) SELECT * FROM p',
      'EXPLAIN PIVOT x ON b USING sum(a)',
    ]) {
      assert.match(
        await reasonOf(sql),
        /Only one statement that reads .* PIVOT .* names its values with IN/,
        sql,
      );
    }
    assert.doesNotMatch(await reasonOf('DROP TABLE x'), /PIVOT/);
  });

  it('has a place where it is wrong', async () => {
    assert.deepEqual(await inspect('SELECT 1\nFRM x'), {
      kind: 'refused',
      reason: 'syntax error at or near "x"',
      position: 13,
    });
    const found = await inspect("  EXPLAIN  SELECT getenv('x')");
    assert.ok(found.kind === 'refused' && found.position === 18);
  });
});
