import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { it } from 'node:test';
import { within } from '../harness/service.ts';
import { eventually } from '../harness/waiting.ts';
import { atTerminal, begin, type Desk, example, listed } from './reference-desk.ts';
import { noTerminal, run, start } from './terminal.ts';

/** The examples about topics, queries and state, in the order in which somebody would try them. */
export function topicExamples(desk: () => Desk): void {
  it('defines topics and publishes to them', async () => {
    const ada = desk();
    await example(ada, 'millrace topic set clicks --batch --stream clicks', { stderr: /Defined clicks/ });
    await example(ada, 'millrace topic set users --file users.json', { stderr: /Defined users/ });
    await run(ada, ['topic', 'set', 'visits', '--batch']);
    await Promise.all([
      example(ada, 'millrace topic list', { stdout: /\nclicks +90 days +clicks[\s\S]*\nusers .*yes/ }),
      example(ada, 'millrace topic list --json', { stdout: /^\{.*"clicks":\{"batch".*\}\n$/ }),
    ]);
    await Promise.all([
      example(ada, 'millrace topic publish clicks --file clicks.ndjson --key /user --id /id', {
        stderr: /Published 3 messages to clicks/,
      }),
      example(ada, 'cat visits.csv | millrace topic publish visits --format csv --key /session', {
        stderr: /Published 4 messages to visits/,
      }),
    ]);
  });

  it('shows messages as they come', async () => {
    const ada = desk();
    const tails = [
      begin(ada, 'millrace topic tail clicks'),
      begin(ada, 'millrace topic tail clicks --key user-42 --json'),
    ] as const;
    const shown = [
      /^\S+Z {2}user-42 {2}\{"page":"\/"\}$/m,
      /^\{.*"messageKey":"user-42".*"body":\{"page":"\/"\}.*\}$/m,
    ] as const;
    try {
      for (const tail of tails) await tail.shows(/Waiting for messages of clicks/);
      // That they wait is said before they are connected, so there may have to be a second message.
      await eventually('both show a message', 60_000, async () => {
        await example(ada, `millrace topic publish clicks --message '{"page":"/"}' --message-key user-42`, {
          stdout: /^\S+\n$/,
        });
        return tails.every((tail, index) => shown[index]?.test(tail.stdout) === true) || undefined;
      });
      assert.deepEqual(await Promise.all(tails.map((tail) => tail.interrupt())), [130, 130]);
    } finally {
      await Promise.all(tails.map((tail) => tail.close()));
    }
  });

  it('asks with SQL', async () => {
    const ada = desk();
    const views = 'SELECT page, count(*) AS views FROM clicks GROUP BY page ORDER BY views DESC';
    await example(ada, `millrace query run "${views}"`, {
      stdout: /^page +views\n-+ +-+\n\/ +\d+\n\/hats +1\n$/,
      stderr: /^2 rows/m,
    });
    await Promise.all([
      example(ada, 'millrace query run "SELECT * FROM clicks" --output csv > clicks.csv'),
      example(
        ada,
        'millrace query run --chart "SELECT country, count(*) FROM visits GROUP BY 1 ORDER BY 2 DESC"',
        { stdout: /^DE {2}3 {2}█+\nFR {2}1 {2}█+/ },
      ),
    ]);
    assert.match(await readFile(join(ada.directory, 'clicks.csv'), 'utf8'), /^.*page.*\r?\n[\s\S]*\/hats/);
    await Promise.all([
      example(ada, 'millrace query schema', {
        stdout: /clicks +page +varchar[\s\S]*visits +country +varchar/,
      }),
      example(ada, 'millrace query schema clicks', { stdout: /^table[\s\S]*\nclicks +page +varchar/ }),
    ]);
  });

  it('comes back to queries, and stops one', async () => {
    const ada = desk();
    const shown = await example(ada, 'millrace query history --limit 5', {
      stdout: /SUCCEEDED .*SELECT page, count/,
    });
    const id = /^(\S+) .*SELECT page, count/m.exec(shown)?.[1] ?? '';
    const replaced = { q4Jm2nXv5KpLw3RtYb7Zc1: id };
    await Promise.all([
      example(ada, 'millrace query status q4Jm2nXv5KpLw3RtYb7Zc1', {
        replaced,
        stdout: /^SUCCEEDED {2}SELECT page/,
      }),
      example(ada, 'millrace query results q4Jm2nXv5KpLw3RtYb7Zc1', { replaced, stdout: /\n\/hats +1\n/ }),
    ]);
    await example(
      ada,
      'millrace query results q4Jm2nXv5KpLw3RtYb7Zc1 --output parquet --file result.parquet',
      { replaced, stderr: /Saved result\.parquet/ },
    );
    await assertParquet(ada, 'result.parquet');
    const slow = start(ada, ['query', 'run', 'SELECT sum(sin(range)) FROM range(100000000000)']);
    try {
      const running = await eventually('the query runs', 30_000, async () => {
        const [latest] = await listed(ada, 'query', 'history', '--limit', '1');
        return latest.state === 'RUNNING' ? latest.queryExecutionId : undefined;
      });
      await example(ada, 'millrace query cancel q4Jm2nXv5KpLw3RtYb7Zc1', {
        replaced: { q4Jm2nXv5KpLw3RtYb7Zc1: running },
        stdout: /^CANCELLED\n$/,
      });
      assert.equal((await within(slow.ended, 30_000, 'the query goes on')).code, 1);
    } finally {
      slow.child.kill('SIGKILL');
    }
  });

  it('asks one question after the other at a terminal', { skip: noTerminal ?? false }, async () => {
    const terminal = atTerminal(desk(), 'millrace query');
    await terminal.shows(/millrace> /);
    terminal.enter("SELECT count(*) AS hats FROM clicks WHERE page = '/hats';");
    await terminal.shows(/hats\s+-+\s+1\s[\s\S]*1 row,[\s\S]*millrace> /);
    terminal.enter('\\q');
    assert.equal(await terminal.end(), 0);
  });

  it('lists and saves files', async () => {
    const ada = desk();
    const all = await example(ada, 'millrace topic files clicks', { stdout: /\.parquet +[\d.]+ k?B / });
    const key = /^(\S+\.parquet) /m.exec(all)?.[1] ?? '';
    const month = /year=\d+\/month=\d+\//.exec(key)?.[0] ?? '';
    const some = await example(ada, 'millrace topic files clicks --prefix year=2026/month=11/', {
      replaced: { 'year=2026/month=11/': month },
    });
    assert.ok(some.includes(key), some);
    await example(
      ada,
      'millrace topic download clicks organization=acme/topic=clicks/year=2026/month=11/day=15/hour=04/AHCj.parquet',
      {
        replaced: {
          'organization=acme/topic=clicks/year=2026/month=11/day=15/hour=04/AHCj.parquet': key,
        },
        stderr: /Saved \S+\.parquet\./,
      },
    );
    assert.match(
      key,
      /^organization=acme\/topic=clicks\/year=\d{4}\/month=\d\d\/day=\d\d\/hour=\d\d\/\w+\.parquet$/,
    );
    await assertParquet(ada, basename(key));
  });

  it('has schemas', async () => {
    const ada = desk();
    await example(ada, 'millrace topic schema set clicks clicks.schema.json', {
      stderr: /Set the schema of clicks/,
    });
    const properties = async (text: string) => Object.keys(JSON.parse(text).properties);
    const set = await properties(await example(ada, 'millrace topic schema get clicks'));
    assert.deepEqual(set.slice(0, 3), ['page', 'user', 'id']);
    const found = await properties(await example(ada, 'millrace topic schema recalculate clicks'));
    assert.deepEqual(found.toSorted(), ['id', 'page', 'user']);
  });

  it('keeps state', async () => {
    const ada = desk();
    await example(ada, `millrace state set user 42 --attributes '{"visits":1}' --ttl 3600`, {
      stdout: /^user:42 {2}version 1\n$/,
    });
    await Promise.all([
      example(ada, 'millrace state get user 42', { stdout: /^\{\n {2}"visits": 1\n\}\n$/ }),
      example(ada, 'millrace state list user', { stdout: /\nuser:42 +1 +\S+Z +\{"visits":1\}\n$/ }),
      example(ada, 'millrace state list --json', { stdout: /^\{.*"mergedKey":"user:42".*\}$/m }),
    ]);
    await example(ada, 'millrace state delete user 42 --yes', { stderr: /Deleted\./ });
    assert.equal((await run(ada, ['state', 'get', 'user', '42'])).code, 4);
  });
}

async function assertParquet(desk: Desk, name: string): Promise<void> {
  assert.match(await readFile(join(desk.directory, name), 'latin1'), /^PAR1[\s\S]*PAR1$/);
}
