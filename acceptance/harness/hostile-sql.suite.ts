import assert from 'node:assert/strict';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type RunningService, startService } from './service.ts';
import { Analyst } from './sql.ts';

const secret = 'TheOtherOrganizationsSecret';

/** Statements that must not be run at all, or must find nothing. */
function trespasses(other: string, dataDirectory: string): Record<string, string> {
  const foreign = `${dataDirectory}/objects/lake/organization=${other}`;
  return {
    'reads a file of the host': "SELECT * FROM read_text('/etc/passwd')",
    'reads a file as bytes': "SELECT * FROM read_blob('/etc/passwd')",
    'reads a file as CSV': "SELECT * FROM read_csv('/etc/passwd', header = false)",
    'reads a file as CSV by another name': "SELECT * FROM read_csv_auto('/etc/passwd')",
    'reads a file as JSON': "SELECT * FROM read_json('/etc/passwd')",
    'reads a file as JSON objects': "SELECT * FROM read_json_objects('/etc/passwd')",
    'reads a file as NDJSON': "SELECT * FROM read_ndjson_auto('/etc/passwd')",
    'reads a database file': `SELECT * FROM read_duckdb('${dataDirectory}/millrace.db')`,
    'sniffs a file': "SELECT * FROM sniff_csv('/etc/passwd')",
    'lists files': "SELECT * FROM glob('/**')",
    'reads the environment': "SELECT * FROM read_text('/proc/self/environ')",
    'reads the environment through the FROM-first form': "FROM read_text('/proc/1/environ')",
    'names a file as a table': "SELECT * FROM '/etc/passwd'",
    'names a CSV file as a table': "SELECT * FROM '/etc/hosts.csv'",
    'names a Parquet file of another organization': `SELECT * FROM '${foreign}/topic=secrets/**/*.parquet'`,
    'reads Parquet of another organization': `SELECT * FROM read_parquet('${foreign}/**/*.parquet')`,
    'reads Parquet of another organization by a relative path': `SELECT * FROM parquet_scan('../organization=${other}/**/*.parquet')`,
    'reads the metadata of a file': `SELECT * FROM parquet_metadata('../organization=${other}/x.parquet')`,
    'reads its own Parquet past its table': "SELECT * FROM read_parquet('**/*.parquet')",
    'names the database of another organization': `SELECT * FROM "${other}".main.secrets`,
    'names the table of another organization': 'SELECT * FROM secrets',
    'hides a function in a subquery': "SELECT (SELECT content FROM read_text('/etc/passwd') LIMIT 1)",
    'hides a function in a common table':
      "WITH x AS (SELECT * FROM read_text('/etc/passwd')) SELECT * FROM x",
    'hides a function behind a lateral join':
      "SELECT * FROM range(1) t(i), LATERAL (SELECT * FROM read_text('/etc/passwd'))",
    'hides a function in EXPLAIN ANALYZE': "EXPLAIN ANALYZE SELECT * FROM read_text('/etc/passwd')",
    'hides a function in DESCRIBE': "DESCRIBE SELECT * FROM read_csv('/etc/passwd')",
    'hides a statement behind a comment': "/* /* */ EXPLAIN SELECT 1 --*/ COPY (SELECT 1) TO '/tmp/x'",
    'writes a file': "COPY (SELECT 1) TO '/tmp/millrace-hostile.csv'",
    'explains and so writes a file': "EXPLAIN ANALYZE COPY (SELECT 1) TO '/tmp/millrace-hostile.csv'",
    'loads a file': "COPY clicks FROM '/etc/passwd'",
    'attaches a file': `ATTACH '${dataDirectory}/millrace.db' AS x`,
    'detaches a database': 'DETACH memory',
    'uses another database': 'USE system',
    'installs an extension': 'INSTALL httpfs',
    'loads an extension': 'LOAD httpfs',
    'reads over the network': "SELECT * FROM 'https://example.com/x.parquet'",
    'reads over the network by function': "SELECT * FROM read_parquet('s3://bucket/x.parquet')",
    'runs a pragma': 'PRAGMA database_list',
    'changes a setting': "SET memory_limit = '100GB'",
    'unlocks the configuration': 'SET lock_configuration = false',
    'allows access outside': 'SET GLOBAL enable_external_access = true',
    'resets a setting': 'RESET memory_limit',
    'calls a function': 'CALL pragma_version()',
    'exports the database': "EXPORT DATABASE '/tmp/x'",
    'imports a database': "IMPORT DATABASE '/tmp/x'",
    'makes a table': 'CREATE TABLE x AS SELECT 1',
    'makes a view': 'CREATE VIEW x AS SELECT 1',
    'makes a macro': 'CREATE MACRO f(x) AS TABLE SELECT * FROM read_text(x)',
    'makes a secret': "CREATE SECRET s (TYPE s3, KEY_ID 'a', SECRET 'b')",
    inserts: 'INSERT INTO clicks VALUES (1)',
    updates: 'UPDATE clicks SET n = 1',
    deletes: 'DELETE FROM clicks',
    drops: 'DROP VIEW clicks',
    alters: 'ALTER VIEW clicks RENAME TO x',
    truncates: 'TRUNCATE clicks',
    'prepares a statement': 'PREPARE p AS SELECT 1',
    'executes a statement': 'EXECUTE p',
    'begins a transaction': 'BEGIN TRANSACTION',
    checkpoints: 'CHECKPOINT',
    vacuums: 'VACUUM',
    'submits two statements': "SELECT 1; COPY (SELECT 1) TO '/tmp/x'",
    'runs SQL from text': "SELECT * FROM query('SELECT 1')",
    'names a table by text': "SELECT * FROM query_table('clicks')",
    'runs a serialized statement': "SELECT * FROM json_execute_serialized_sql('{}')",
    'scans memory': 'SELECT * FROM arrow_scan(1, 2, 3)',
    'scans memory by name': 'SELECT * FROM seq_scan()',
    'reads a variable of the environment': "SELECT getenv('PATH')",
    'reads a setting': "SELECT current_setting('temp_directory')",
    'lists settings': 'SELECT * FROM duckdb_settings()',
    'lists settings by a view': 'SELECT * FROM pg_settings',
    'lists settings by a qualified view': 'SELECT * FROM pg_catalog.pg_settings',
    'lists secrets': 'SELECT * FROM duckdb_secrets()',
    'finds a secret': "SELECT * FROM which_secret('s3://x', 's3')",
    'lists extensions': 'SELECT * FROM duckdb_extensions()',
    'lists databases': 'SELECT * FROM duckdb_databases()',
    'lists databases by a view': 'SELECT * FROM duckdb_databases',
    'shows databases': 'SHOW DATABASES',
    'lists temporary files': 'SELECT * FROM duckdb_temporary_files()',
    'reads the log': 'SELECT * FROM duckdb_logs()',
    'writes to the log': "SELECT write_log('x')",
    'turns on logging': 'SELECT * FROM enable_logging()',
    'reads how a view is made': "SELECT sql FROM duckdb_views() WHERE view_name = 'clicks'",
    'reads how a view is made from the schema': 'SELECT view_definition FROM information_schema.views',
    'reads master tables': 'SELECT * FROM sqlite_master',
    'names a table of the engine where its own is out of reach':
      'SELECT * FROM (WITH pg_settings AS (SELECT 1) SELECT 1), pg_settings',
    'names files where its own table is out of reach':
      'SELECT * FROM (WITH "**/*.parquet" AS (SELECT 1) SELECT 1), "**/*.parquet"',
    'hides a function from EXPLAIN behind a carriage return':
      "--\rSELECT * FROM read_text('/etc/passwd') /*\nEXPLAIN SELECT 1 -- */",
    'hides a statement from EXPLAIN behind a carriage return':
      "--\rCOPY (SELECT 1) TO 'x.csv' /*\nEXPLAIN SELECT 1 -- */",
    sleeps: 'SELECT sleep_ms(100000)',
    'crashes the engine through raw state': "SELECT finalize('x'::BLOB)",
  };
}

/** Statements that would never end, or would take all there is. Each is stopped by some limit. */
const excesses: Record<string, string> = {
  'counts for ever': 'SELECT count(*) FROM range(1000000000000)',
  'recurs for ever':
    'WITH RECURSIVE t AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM t) SELECT count(*) FROM t',
  'recurs with growing text':
    "WITH RECURSIVE t AS (SELECT 'x' AS s UNION ALL SELECT s || s FROM t) SELECT max(length(s)) FROM t",
  'joins everything with everything':
    'SELECT count(*) FROM range(1000000) a, range(1000000) b, range(1000000) c WHERE a.range + b.range = c.range',
  'gathers everything into a list': "SELECT list(i::VARCHAR || repeat('x', 100)) FROM range(100000000) t(i)",
  'gathers everything into a text': "SELECT string_agg(repeat('x', 1000), '') FROM range(100000000)",
  'repeats a text for ever': "SELECT length(repeat(repeat('x', 1000000), 1000000))",
  'sorts more than there is room for': 'SELECT i, hash(i) FROM range(10000000000) t(i) ORDER BY 2',
  'makes a long list': 'SELECT len(range(100000000000))',
  'groups by everything': 'SELECT count(*) FROM (SELECT i, count(*) FROM range(10000000000) t(i) GROUP BY i)',
  'gives a result without end': "SELECT i, repeat('x', 1000) FROM range(100000000000) t(i)",
  'nests parentheses': `SELECT ${'('.repeat(120_000)}1${')'.repeat(120_000)}`,
  'leaves parentheses open': `SELECT ${'('.repeat(250_000)}`,
  'nests subqueries': `SELECT * FROM ${'(SELECT * FROM '.repeat(10_000)}range(1)${')'.repeat(10_000)}`,
  'nests functions': `SELECT ${'abs('.repeat(40_000)}1${')'.repeat(40_000)}`,
  'negates without end': `SELECT ${'NOT '.repeat(60_000)}true`,
  'adds without end': `SELECT 1${'+1'.repeat(100_000)}`,
  'unites without end': `SELECT 1${' UNION ALL SELECT 1'.repeat(13_000)}`,
  'chains conditions': `SELECT 1 WHERE true${' AND 1=1'.repeat(30_000)}`,
  'chains common tables': `WITH c0 AS (SELECT 1 AS i)${Array.from({ length: 40 }, (_v, n) => `, c${n + 1} AS (SELECT a.i FROM c${n} a, c${n} b)`).join('')} SELECT count(*) FROM c40`,
  'matches with a slow pattern': `SELECT regexp_matches(repeat('a', 100000), '(a*)*b') FROM range(100000)`,
};

/** The tests with hostile statements. The path decides whether the service finds a sandbox. */
export function hostileSqlSuite(name: string, path: string): void {
  describe(name, () => {
    let service: RunningService;
    let analyst: Analyst;
    let victim: Analyst;
    before(async () => {
      service = await startService({
        environment: {
          PATH: path,
          MILLRACE_QUERY_MEMORY_BYTES: String(128 * 1024 * 1024),
          MILLRACE_QUERY_TEMPORARY_BYTES: String(64 * 1024 * 1024),
          MILLRACE_QUERY_RESULT_BYTES: String(16 * 1024 * 1024),
          MILLRACE_QUERY_SECONDS: '3',
        },
      });
      victim = await Analyst.hire(service);
      await victim.define('secrets');
      await victim.publish('secrets', [{ secret }]);
      assert.deepEqual(await victim.rows('SELECT secret FROM secrets'), [[secret]]);
      analyst = await Analyst.hire(service);
      await analyst.define('clicks');
      await analyst.publish('clicks', [{ n: 1 }]);
      assert.deepEqual(await analyst.rows('SELECT n FROM clicks'), [['1']]);
      writeFileSync(join(service.dataDirectory, 'planted.csv'), `${secret}\n`);
    });
    after(() => service.remove());

    it('is refused where it trespasses, and tells nothing', async () => {
      const statements = Object.entries(trespasses(victim.organizationName, service.dataDirectory));
      assert.ok(statements.length >= 40, `${statements.length}`);
      for (const [what, sql] of statements) {
        const told = await analyst.failure(sql);
        assert.doesNotMatch(told, new RegExp(secret), what);
        assert.doesNotMatch(told, /root:|query-scratch|\/millrace\/|node_modules/, what);
      }
      assert.deepEqual(await analyst.rows('SELECT n FROM clicks'), [['1']]);
    });

    for (const [what, sql] of Object.entries(excesses)) {
      it(`is stopped where it ${what}, and harms nobody`, async () => {
        const submitted = await analyst.submit(sql);
        if (submitted.status === 200) {
          const id = submitted.body.queryExecutionId;
          // Somebody else gets an answer meanwhile.
          assert.deepEqual(await victim.rows('SELECT count(*) FROM secrets'), [['1']]);
          const ended = await analyst.end(id, 20_000);
          // What the engine finds cheap is no harm; everything else was stopped with a reason.
          if (ended.state === 'SUCCEEDED') assert.ok((ended.executionTimeMs ?? 0) < 4000, what);
          else assert.ok(ended.state === 'FAILED' && ended.errorMessage, what);
        } else {
          assert.equal(submitted.status, 400, submitted.text);
          assert.equal(submitted.body.code, 'SQL_INVALID');
        }
        assert.equal((await fetch(`${service.url}/readyz`)).status, 200);
      });
    }

    it('leaves nothing behind', async () => {
      assert.deepEqual(await analyst.rows('SELECT n FROM clicks'), [['1']]);
      assert.deepEqual(
        readdirSync('/tmp').filter((name) => name.startsWith('millrace-hostile')),
        [],
      );
      assert.equal(service.process.exitCode, null);
    });
  });
}
