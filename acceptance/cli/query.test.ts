import assert from 'node:assert/strict';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../harness/waiting.ts';
import { openShop, type Shop } from './shop.ts';
import { noTerminal, run, Terminal } from './terminal.ts';

let shop: Shop;
before(async () => {
  shop = await openShop();
  assert.equal((await run(shop, ['topic', 'set', 'visits', '--batch'])).code, 0);
  const lines = Array.from({ length: 6 }, (_value, index) =>
    JSON.stringify({ user: 'u', page: index < 4 ? '/' : '/a', text: '\u001b[31mred\u009b' }),
  );
  const published = await run(shop, ['topic', 'publish', 'visits', '--key', '/user'], lines.join('\n'));
  assert.equal(published.code, 0, published.stderr);
});
after(() => shop.remove());

const views = 'SELECT page, count(*) AS views FROM visits GROUP BY page ORDER BY views DESC';

describe('the prompt of queries', { skip: noTerminal ?? false, timeout: 600_000 }, () => {
  it('runs statements over several lines, also pasted ones, shows tables and remembers', async () => {
    const terminal = new Terminal(shop, ['query']);
    await terminal.shows(/millrace> /);
    terminal.enter('SELECT page, count(*) AS views');
    await terminal.shows(/-> /);
    terminal.enter('FROM visits GROUP BY page ORDER BY views DESC;');
    await terminal.shows(/page {2}views\s+-+ {2}-+\s+\/ +4\s+\/a +2\s+2 rows/);
    await terminal.shows(/millrace> /);
    terminal.type('SELECT 11 AS first;\rSELECT 22 AS second;\r');
    await terminal.shows(/first\s+-+\s+11\s/);
    await terminal.shows(/second\s+-+\s+22\s/);
    await terminal.shows(/millrace> /);
    terminal.enter('\\chart');
    await terminal.shows(/no column of numbers|█/);
    terminal.enter('\\d');
    await terminal.shows(/visits {2}\d+ columns/);
    terminal.enter('SELEC 1;');
    await terminal.shows(/error: .*SELEC/);
    await terminal.shows(/millrace> /);
    terminal.enter('SELECT text FROM visits LIMIT 1;');
    await terminal.shows(/\\x1b\[31mred\\x9b/);
    assert.ok(!terminal.raw.includes('\u009b') && !terminal.raw.includes('\u001b[31mred'));
    terminal.enter('\\q');
    assert.equal(await terminal.end(), 0);
    const history = join(shop.directory, 'config/millrace/query-history');
    assert.equal((await stat(history)).mode & 0o777, 0o600);
    assert.match(await readFile(history, 'utf8'), /^SELECT page, count\(\*\) AS views FROM visits/);
    const again = new Terminal(shop, ['query']);
    await again.shows(/millrace> /);
    // Up: the last statement of the time before.
    again.type('\u001b[A');
    await again.shows(/SELECT text FROM visits LIMIT 1;/);
    again.enter('');
    await again.shows(/1 row,/);
    await again.shows(/millrace> /);
    again.type('\u0004');
    assert.equal(await again.end(), 0);
  });

  it('drops what is typed with ctrl-C, ends a query with it, and then itself', async () => {
    const terminal = new Terminal(shop, ['query']);
    await terminal.shows(/millrace> /);
    terminal.enter('SELECT this is not');
    await terminal.shows(/-> /);
    terminal.type('what was meant');
    await terminal.shows(/what was meant/);
    terminal.interrupt();
    await terminal.shows(/millrace> /);
    terminal.enter('SELECT count(*) AS n FROM range(1000000000) a, range(1000000000) b;');
    await eventually('the query runs', 30_000, async () => {
      const { stdout: latest } = await run(shop, ['query', 'history', '--json', '--limit', '1']);
      return latest.includes('"RUNNING"') ? true : undefined;
    });
    terminal.interrupt();
    await terminal.shows(/cancelled/);
    await terminal.shows(/millrace> /);
    terminal.enter('SELECT 5 AS five;');
    await terminal.shows(/five\s+-+\s+5\s/);
    await terminal.shows(/millrace> /);
    terminal.interrupt();
    assert.equal(await terminal.end(), 0);
    const { stdout } = await run(shop, ['query', 'history', '--json', '--limit', '5']);
    const states = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    assert.ok(
      states.every(({ state }) => state !== 'RUNNING' && state !== 'QUEUED'),
      stdout,
    );
  });
});

describe('running one query', { timeout: 600_000 }, () => {
  it('prints an aligned table as data and the rest as remarks', async () => {
    const { code, stdout, stderr } = await run(shop, ['query', 'run', views]);
    assert.equal(code, 0, stderr);
    assert.equal(stdout, 'page  views\n----  -----\n/         4\n/a        2\n');
    assert.match(stderr, /^2 rows, \d+ ms/);
    assert.equal((await run(shop, ['query', 'run'], views)).stdout, stdout);
    const chart = await run(shop, ['query', 'run', '--chart', views]);
    assert.match(chart.stdout, /^\/ {3}4 {2}█+\n\/a {2}2 {2}█+▌?\n$/);
  });

  it('writes CSV, JSON and Parquet, to stdout or to a file', async () => {
    const csv = await run(shop, ['query', 'run', views, '--output', 'csv']);
    assert.equal(csv.stdout.replaceAll('\r', ''), 'page,views\n/,4\n/a,2\n');
    const json = await run(shop, ['query', 'run', views, '--json']);
    assert.match(json.stdout, /"page":\s*"\/"/);
    const saved = await run(shop, ['query', 'run', views, '-o', 'parquet', '--file', 'views.parquet']);
    assert.equal(saved.code, 0, saved.stderr);
    const bytes = await readFile(join(shop.directory, 'views.parquet'));
    assert.equal(bytes.subarray(0, 4).toString(), 'PAR1');
    const { queryExecutionId } = JSON.parse(
      (await run(shop, ['query', 'history', '--limit', '1', '--json'])).stdout,
    );
    assert.match((await run(shop, ['query', 'results', queryExecutionId])).stdout, /\/ +4/);
    assert.match((await run(shop, ['query', 'status', queryExecutionId])).stdout, /^SUCCEEDED/);
    assert.match((await run(shop, ['query', 'schema', 'visits'])).stdout, /visits +page +varchar/);
  });

  it('says what is wrong with a statement, and answers 1', async () => {
    const wrong = await run(shop, ['query', 'run', 'SELECT * FROM nowhere']);
    assert.equal(wrong.code, 1);
    assert.match(wrong.stderr, /^error: .*nowhere/);
    assert.equal(wrong.stdout, '');
    const gone = await run(shop, ['query', 'status', 'q4Jm2nXv5KpLw3RtYb7Zc1']);
    assert.equal(gone.code, 4);
    const format = await run(shop, ['query', 'run', 'SELECT 1', '--output', 'xml']);
    assert.equal(format.code, 2);
  });
});
