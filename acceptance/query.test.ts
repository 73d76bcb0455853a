import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { call } from './harness/client.ts';
import { join as joinOrganization, newApiKey, newPerson } from './harness/people.ts';
import { type RunningService, startService } from './harness/service.ts';
import { Analyst } from './harness/sql.ts';
import { eventually } from './harness/waiting.ts';

describe('a query', () => {
  let service: RunningService;
  let analyst: Analyst;
  before(async () => {
    service = await startService();
    analyst = await Analyst.hire(service);
    await analyst.define('clicks');
    await analyst.publish(
      'clicks',
      Array.from({ length: 250 }, (_value, n) => ({ n, page: `/p${n % 5}`, at: '2026-01-02T03:04:05Z' })),
    );
  });
  after(() => service.remove());

  it('sees what was published right before it, with types', async () => {
    const { columns, rows } = await analyst.table(
      'SELECT page, count(*) AS views, sum(n) AS total, max("at") AS latest FROM clicks GROUP BY page ORDER BY page',
    );
    assert.deepEqual(columns, [
      { name: 'page', type: 'varchar' },
      { name: 'views', type: 'bigint' },
      { name: 'total', type: 'hugeint' },
      { name: 'latest', type: 'timestamp' },
    ]);
    assert.deepEqual(rows[1], ['/p1', '50', '6175', '2026-01-02 03:04:05']);
    for (let round = 1; round <= 3; round += 1) {
      await analyst.publish('clicks', [{ n: 1000 + round, page: '/new' }]);
      assert.deepEqual(await analyst.rows("SELECT count(*) FROM clicks WHERE page = '/new'"), [[`${round}`]]);
    }
  });

  it('finds topics of any name, by exact case first, and joins them', async () => {
    for (const name of ['select', 'odd-name.with_marks', 'Case', 'case', 'lower']) await analyst.define(name);
    await analyst.publish('select', [{ id: 1, update: 'DROP TABLE x' }]);
    await analyst.publish('odd-name.with_marks', [{ id: 1, b: 2 }]);
    await analyst.publish('Case', [{ which: 'upper' }]);
    await analyst.publish('case', [{ which: 'lower' }]);
    await analyst.publish('lower', [{ a: 1 }]);
    assert.deepEqual(
      await analyst.rows(
        `SELECT s.update, o.b, 'DELETE; INSERT' FROM "select" s JOIN "odd-name.with_marks" o USING (id) WHERE s.update LIKE 'DROP%'`,
      ),
      [['DROP TABLE x', '2', 'DELETE; INSERT']],
    );
    assert.deepEqual(await analyst.rows('SELECT which FROM "Case"'), [['upper']]);
    assert.deepEqual(await analyst.rows('SELECT which FROM "case"'), [['lower']]);
    assert.deepEqual(await analyst.rows('SELECT a FROM LOWER'), [['1']]);
    assert.match(await analyst.failure('SELECT * FROM "CASE"'), /"Case" or "case"/);
    assert.match(await analyst.failure('SELECT * FROM "Case", "case"'), /differ only in case/);
    const name = analyst.organizationName;
    assert.deepEqual(await analyst.rows(`SELECT count(*) FROM ${name}.lower`), [['1']]);
    assert.deepEqual(await analyst.rows(`SELECT count(*) FROM "${name}".main.lower`), [['1']]);
  });

  it('finds topics that nobody defined by any way of writing them, right after their first message', async () => {
    await analyst.publish('Visits', [{ a: 1 }]);
    assert.deepEqual(await analyst.rows('SELECT a FROM visits'), [['1']]);
    // Names that would mean a file, or a table of the engine, where no topic has them.
    for (const name of ['export.csv', 'pg_class']) {
      await analyst.publish(name, [{ a: 2 }]);
      assert.deepEqual(await analyst.rows(`SELECT a FROM "${name}"`), [['2']]);
    }
    await analyst.publish('fresh', [{ a: 3 }]);
    assert.ok((await analyst.rows('SHOW TABLES')).flat().includes('fresh'));
  });

  it('tells values as text, NULL as null, nested values as JSON, and types in lower case', async () => {
    const { columns, rows } = await analyst.table(
      `SELECT 1 AS a, 2 AS a, NULL AS n, true AS b, 1.50::DECIMAL(5,2) AS d, 'x' AS s, '' AS e, DATE '2026-01-02' AS day,
       {'Name': 'x', 'list': [1, NULL]} AS st, '{"k": [1]}'::JSON AS j, 170141183460469231731687303715884105727 AS h, 'two
lines, "quoted"' AS t`,
    );
    assert.deepEqual(
      columns.map(({ type }) => type),
      [
        'integer',
        'integer',
        'integer',
        'boolean',
        'decimal(5,2)',
        'varchar',
        'varchar',
        'date',
        'struct("Name" varchar, list integer[])',
        'json',
        'hugeint',
        'varchar',
      ],
    );
    assert.deepEqual(
      columns.slice(0, 2).map(({ name }) => name),
      ['a', 'a'],
    );
    assert.deepEqual(rows, [
      [
        '1',
        '2',
        null,
        'true',
        '1.50',
        'x',
        '',
        '2026-01-02',
        '{"Name":"x","list":[1,null]}',
        '{"k": [1]}',
        '170141183460469231731687303715884105727',
        'two\nlines, "quoted"',
      ],
    ]);
    assert.deepEqual((await analyst.table('SELECT 1 AS x WHERE false')).rows, []);
  });

  it('reads the state of the organization as the table _state', async () => {
    const path = { organizationName: analyst.organizationName };
    const token = analyst.person.accessToken;
    for (const [keyParts, attributes] of [
      [['user', 'a:b'], { visits: 7 }],
      [['user', 'c'], { visits: 2, tags: ['x'] }],
    ] as const) {
      const body = { keyParts: [...keyParts], attributes };
      assert.equal((await call(service.url, 'upsertState', { token, path, body })).status, 200);
    }
    const { columns, rows } = await analyst.table(
      "SELECT key_parts, merged_key, attributes->>'visits' AS visits, version, expires_at, updated_at > '2020-01-01' FROM _state ORDER BY merged_key",
    );
    assert.equal(columns[0]?.type, 'varchar[]');
    assert.deepEqual(rows, [
      ['["user","a:b"]', 'user:a\\:b', '7', '1', null, 'true'],
      ['["user","c"]', 'user:c', '2', '1', null, 'true'],
    ]);
    const others = await Analyst.hire(service);
    assert.deepEqual(await others.rows('SELECT * FROM _state'), []);
  });

  it('shows the tables there are, in the schema and in SQL', async () => {
    const schema = (await analyst.schema()).body;
    assert.equal(schema.databaseName, analyst.organizationName);
    const clicks = schema.tables.find(({ name }) => name === 'clicks');
    assert.deepEqual(
      clicks?.columns.map(({ name, type }) => `${name} ${type}`),
      [
        'n bigint',
        'page varchar',
        'at timestamp',
        '_key varchar',
        '_id varchar',
        '_ingested_at timestamp',
        '_rescued json',
      ],
    );
    assert.ok(schema.tables.some(({ name }) => name === '_state'));
    const shown = (await analyst.rows('SHOW TABLES')).flat();
    assert.ok(shown.includes('clicks') && shown.includes('_state'), shown.join());
    const listed = await analyst.rows(
      "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'clicks' ORDER BY ordinal_position",
    );
    assert.deepEqual(listed[0], ['n', 'BIGINT']);
    assert.deepEqual((await analyst.rows('DESCRIBE clicks'))[1]?.slice(0, 2), ['page', 'VARCHAR']);
    assert.match((await analyst.rows('EXPLAIN SELECT count(*) FROM clicks'))[0]?.[1] ?? '', /PARQUET/);
    assert.equal((await analyst.rows('SUMMARIZE clicks')).length, 7);
  });

  it('gives its rows page by page, with tokens that are good for it alone', async () => {
    const id = await analyst.start(
      'SELECT i, repeat(chr(233), (i % 7)::INT) FROM range(2500) t(i) ORDER BY i',
    );
    await analyst.until(id, ['SUCCEEDED']);
    const seen: string[] = [];
    let nextToken: string | undefined;
    let pages = 0;
    do {
      const page: Awaited<ReturnType<Analyst['results']>> = await analyst.results(id, {
        maxResults: 999,
        ...(nextToken === undefined ? {} : { nextToken }),
      });
      for (const [i] of page.body.rows) seen.push(String(i));
      nextToken = page.body.nextToken;
      pages += 1;
    } while (nextToken !== undefined);
    assert.equal(pages, 3);
    assert.deepEqual(
      seen,
      Array.from({ length: 2500 }, (_value, i) => String(i)),
    );
    assert.equal((await analyst.results(id)).body.rows.length, 100);
    const token = (await analyst.results(id)).body.nextToken ?? '';
    assert.equal((await analyst.results(id, { nextToken: token })).body.rows[0]?.[0], '100');
    const other = await analyst.start('SELECT 1');
    await analyst.until(other, ['SUCCEEDED']);
    for (const [which, wrong] of [
      [other, token],
      [id, `${token.slice(0, -1)}${token.endsWith('A') ? 'B' : 'A'}`],
      [id, 'x'.repeat(50)],
    ] as const) {
      const refused = await analyst.results(which, { nextToken: wrong });
      assert.equal(refused.status, 400);
      assert.equal(refused.body.code, 'TOKEN_INVALID');
    }
  });

  it('has no results before it succeeded, and is nobody else’s', async () => {
    const id = await analyst.start('SELECT count(*) FROM range(100000000000)');
    const early = await analyst.results(id);
    assert.equal(early.status, 400);
    assert.equal(early.body.code, 'QUERY_NOT_SUCCEEDED');
    assert.equal((await analyst.export(id, 'csv')).status, 400);
    const stranger = await Analyst.hire(service);
    for (const ask of [stranger.status(id), stranger.results(id), stranger.cancel(id)]) {
      assert.equal((await ask).status, 404);
    }
    assert.equal((await stranger.export(id, 'csv')).status, 404);
    assert.equal((await analyst.status(id)).body.state, 'RUNNING');
    assert.equal((await analyst.cancel(id)).body.state, 'CANCELLED');
    assert.equal((await analyst.results(id)).body.code, 'QUERY_NOT_SUCCEEDED');
  });

  it('is stopped within a second, wherever it is, and stays as it was after its end', async () => {
    const endless = [
      'SELECT count(*) FROM range(100000000000)',
      'SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range * b.range % 7 = 3',
      'WITH RECURSIVE t AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM t) SELECT count(*) FROM t',
    ];
    for (const sql of endless) {
      const id = await analyst.start(sql);
      await analyst.until(id, ['RUNNING']);
      const began = performance.now();
      const cancelled = await analyst.cancel(id);
      const took = performance.now() - began;
      assert.equal(cancelled.body.state, 'CANCELLED', sql);
      assert.ok(took < 1000, `${sql} took ${took} ms to stop`);
      assert.ok(cancelled.body.completedAt);
    }
    const done = await analyst.run('SELECT 1');
    assert.equal((await analyst.cancel(done.queryExecutionId)).body.state, 'SUCCEEDED');
    assert.deepEqual(await analyst.rows('SELECT 1'), [['1']]);
  });

  it('says where it is wrong, in the words of the engine and without a path', async () => {
    const wrong: [string, RegExp][] = [
      ['SELEC 1', /syntax error at or near "SELEC" \(line 1, column 1\)/],
      ['SELECT *\nFROM clicks\nWHER n = 1', /\(line 3, column 6\)/],
      ['SELECT nope\n  FROM clicks', /Referenced column "nope" not found.*\(line 1, column 8\)/],
      ["SELECT 'é', x\n FROM clicks", /Referenced column "x" not found.*\(line 1, column 13\)/],
      [
        'SELECT * FROM clik',
        /Table with name clik does not exist \(line 1, column 15\)\nDid you mean "clicks"/,
      ],
      ['SELECT * FROM nothing_like_it', /does not exist/],
      [
        'SELECT page::INT\nFROM clicks WHERE n = 1',
        /Could not convert string '\/p1' to INT32.* \(line 1, column 12\)/,
      ],
      ['SELECT 1; SELECT 2', /2 statements/],
      ['', /must|empty|valid|fewer/i],
      ['-- nothing', /no statement/],
      ['SELECT ?', /Parameters/],
    ];
    for (const [sql, message] of wrong) {
      if (sql === '') continue;
      const told = await analyst.failure(sql);
      assert.match(told, message, sql);
      assert.doesNotMatch(told, /\.parquet|query-scratch|\/tmp|\/lake|pg_/, sql);
    }
  });

  it('is told of in the history, newest first, with who submitted it', async () => {
    const historian = await Analyst.hire(service);
    const colleague = await newPerson(service);
    await joinOrganization(service, historian.person, historian.organizationName, colleague, 'VIEWER');
    const key = await newApiKey(service, historian.person.accessToken, historian.organizationName);
    const path = { organizationName: historian.organizationName };
    for (const [token, sqlQuery] of [
      [colleague.accessToken, 'SELECT 1'],
      [key.secret, 'SELECT 2'],
      [historian.person.accessToken, 'SELECT nope'],
    ] as const) {
      const made = await call(service.url, 'submitQuery', { token, path, body: { sqlQuery } });
      await historian.end(made.body.queryExecutionId);
    }
    const { queries } = (await historian.history()).body;
    assert.deepEqual(
      queries.map(({ sqlQuery, state, username }) => [sqlQuery, state, username]),
      [
        ['SELECT nope', 'FAILED', historian.person.username],
        ['SELECT 2', 'SUCCEEDED', historian.person.username],
        ['SELECT 1', 'SUCCEEDED', colleague.username],
      ],
    );
    assert.ok(queries.every(({ completedAt, submittedAt }) => (completedAt ?? '') >= submittedAt));
    assert.equal((await historian.history(1)).body.queries.length, 1);
  });

  it('is exported as CSV, JSON and Parquet', async () => {
    const id = await analyst.start(
      'SELECT n, page, n / 2 AS half, [n] AS l, NULL AS nothing, sum(n) OVER () AS s FROM clicks WHERE n < 3 ORDER BY n',
    );
    await analyst.until(id, ['SUCCEEDED']);
    const csv = await analyst.export(id, 'csv');
    assert.equal(csv.headers.get('content-type'), 'text/csv; charset=utf-8');
    assert.equal(csv.headers.get('content-disposition'), `attachment; filename="query-${id}.csv"`);
    assert.equal(
      await csv.text(),
      'n,page,half,l,nothing,s\r\n0,/p0,0.0,[0],,3\r\n1,/p1,0.5,[1],,3\r\n2,/p2,1.0,[2],,3\r\n',
    );
    const json = await analyst.export(id, 'json');
    assert.match(json.headers.get('content-type') ?? '', /^application\/json/);
    const objects: unknown = await json.json();
    assert.deepEqual(Array.isArray(objects) ? objects[1] : undefined, {
      n: 1,
      page: '/p1',
      half: 0.5,
      l: [1],
      nothing: null,
      s: 3,
    });
    const parquet = await analyst.export(id, 'parquet');
    assert.equal(parquet.headers.get('content-type'), 'application/vnd.apache.parquet');
    const bytes = Buffer.from(await parquet.arrayBuffer());
    assert.equal(bytes.subarray(0, 4).toString(), 'PAR1');
    assert.equal(bytes.subarray(-4).toString(), 'PAR1');
    const folder = await mkdtemp(join(tmpdir(), 'millrace-parquet-'));
    try {
      await writeFile(join(folder, 'r.parquet'), bytes);
      const script = `import { DuckDBInstance } from '@duckdb/node-api'; const c = await (await DuckDBInstance.create()).connect(); console.log(JSON.stringify((await c.runAndReadAll("select column_name, column_type from (describe from '${folder}/r.parquet')")).getRows()))`;
      const described = execFileSync(process.execPath, ['--input-type=module', '-e', script], {
        cwd: import.meta.dirname,
        encoding: 'utf8',
      });
      assert.deepEqual(JSON.parse(described), [
        ['n', 'BIGINT'],
        ['page', 'VARCHAR'],
        ['half', 'DOUBLE'],
        ['l', 'BIGINT[]'],
        ['nothing', 'INTEGER'],
        ['s', 'DECIMAL(38,0)'],
      ]);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it('reads only what it needs of a topic, and says how much', async () => {
    await analyst.define('hours');
    // Fields that are called like words of SQL are as good as others.
    const wide = (n: number) => ({
      n,
      text: `${n * 7919}`.padStart(40, String(n)),
      by: { order: n % 3, group: 'a' },
    });
    await analyst.publish(
      'hours',
      Array.from({ length: 10_000 }, (_value, n) => wide(n)),
    );
    const whole = await analyst.run('SELECT count(DISTINCT text) FROM hours');
    const narrow = await analyst.run('SELECT sum(n) FROM hours');
    const none = await analyst.run(
      "SELECT count(DISTINCT text) FROM hours WHERE _ingested_at < '2020-01-01'",
    );
    const today = await analyst.run(
      'SELECT count(DISTINCT text) FROM hours WHERE _ingested_at > now() - INTERVAL 1 DAY',
    );
    assert.ok((whole.bytesScanned ?? 0) > 50_000, `${whole.bytesScanned}`);
    assert.ok((narrow.bytesScanned ?? 0) < (whole.bytesScanned ?? 0) / 2, `${narrow.bytesScanned}`);
    assert.ok((none.bytesScanned ?? 0) < 5000, `${none.bytesScanned}`);
    assert.ok((today.bytesScanned ?? 0) > 50_000, `${today.bytesScanned}`);
    assert.ok((whole.executionTimeMs ?? -1) >= 0);
  });
});

describe('queries among each other', () => {
  let service: RunningService;
  before(async () => {
    service = await startService({
      environment: { MILLRACE_QUERY_CONCURRENCY: '1', MILLRACE_QUERY_TOTAL_CONCURRENCY: '2' },
    });
  });
  after(() => service.remove());

  it('take turns by organization, with a bounded number at once', async () => {
    const [busy, calm] = await Promise.all([Analyst.hire(service), Analyst.hire(service)]);
    const endless = 'SELECT count(*) FROM range(100000000000)';
    const running = await busy.start(endless);
    await busy.until(running, ['RUNNING']);
    const waiting = [await busy.start('SELECT 1'), await busy.start('SELECT 2')];
    for (const id of waiting) assert.equal((await busy.status(id)).body.state, 'QUEUED');
    assert.deepEqual(await calm.rows('SELECT 3'), [['3']]);
    for (const id of waiting) assert.equal((await busy.status(id)).body.state, 'QUEUED');
    assert.equal((await busy.cancel(waiting[1] ?? '')).body.state, 'CANCELLED');
    await busy.cancel(running);
    assert.equal((await busy.end(waiting[0] ?? '')).state, 'SUCCEEDED');
    assert.equal((await busy.status(waiting[1] ?? '')).body.state, 'CANCELLED');
  });

  it('are refused when too many wait', async () => {
    const eager = await Analyst.hire(service);
    const running = await eager.start('SELECT count(*) FROM range(100000000000)');
    await eager.until(running, ['RUNNING']);
    const ids: string[] = [];
    let refused: Awaited<ReturnType<Analyst['submit']>> | undefined;
    while (refused === undefined && ids.length <= 100) {
      const submitted = await eager.submit('SELECT 1');
      if (submitted.status === 200) ids.push(submitted.body.queryExecutionId);
      else refused = submitted;
    }
    assert.equal(refused?.status, 503);
    assert.equal(refused?.body.code, 'OVERLOADED');
    assert.ok(refused?.headers.get('retry-after'));
    for (const id of ids) await eager.cancel(id);
    await eager.cancel(running);
  });

  it('fail alone when their process dies', async () => {
    const [victim, other] = await Promise.all([Analyst.hire(service), Analyst.hire(service)]);
    const dying = await victim.start('SELECT count(*) FROM range(100000000000)');
    const going = await other.start('SELECT count(*) FROM range(1500000000)');
    await victim.until(dying, ['RUNNING']);
    const worker = await eventually('the process of the query is at work', 20_000, () =>
      runnersOf(service).find(
        ({ options, cpuSeconds }) => options.includes(victim.organizationName) && cpuSeconds > 1,
      ),
    );
    process.kill(worker.id, 'SIGKILL');
    const died = await victim.end(dying, 5000);
    assert.equal(died.state, 'FAILED');
    assert.match(died.errorMessage ?? '', /ended unexpectedly/);
    assert.equal((await other.end(going)).state, 'SUCCEEDED');
    assert.deepEqual(await victim.rows('SELECT 1'), [['1']]);
  });

  it('are failed by a restart when they had not ended, and kept when they had', async () => {
    let restarted = await startService();
    try {
      const analyst = await Analyst.hire(restarted);
      const done = await analyst.run('SELECT 42');
      const running = await analyst.start('SELECT count(*) FROM range(100000000000)');
      await analyst.until(running, ['RUNNING']);
      for (const end of ['kill', 'stop'] as const) {
        await restarted[end]();
        restarted = await startService({ dataDirectory: restarted.dataDirectory });
        const again = new Analyst(restarted, analyst.person, analyst.organizationName);
        const failed = (await again.status(running)).body;
        assert.equal(failed.state, 'FAILED');
        assert.match(failed.errorMessage ?? '', /restarted/);
        assert.deepEqual((await again.results(done.queryExecutionId)).body.rows, [['42']]);
      }
    } finally {
      await restarted.remove();
    }
  });
});

interface RunnerProcess {
  readonly id: number;
  readonly options: string;
  readonly cpuSeconds: number;
}

/** The processes below the service that run queries. */
function runnersOf(service: RunningService): RunnerProcess[] {
  const found: RunnerProcess[] = [];
  const left = [service.process.pid ?? 0];
  for (let id = left.pop(); id !== undefined; id = left.pop()) {
    try {
      const command = readFileSync(`/proc/${id}/cmdline`, 'utf8').split('\0');
      const role = command.indexOf('runner');
      if (role >= 0 && /node$/.test(command[0] ?? '')) {
        const ticks = Number(readFileSync(`/proc/${id}/stat`, 'utf8').split(' ')[13]);
        found.push({ id, options: command[role + 1] ?? '', cpuSeconds: ticks / 100 });
      }
      left.push(
        ...readFileSync(`/proc/${id}/task/${id}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
      );
    } catch {
      // It ended while it was looked at.
    }
  }
  return found;
}
