import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { DuckDBInstance } from '@duckdb/node-api';
import type { Database } from '../database/database.ts';
import { openFileStore } from '../objects/files/files.ts';
import { urlSigner } from '../objects/files/signature.ts';
import type { ObjectStore } from '../objects/objects.ts';
import { type AdjustableClock, adjustableClock } from '../platform/clock.ts';
import { silentLog } from '../platform/log.ts';
import { Problem } from '../platform/problem.ts';
import { systemRandom } from '../platform/random.ts';
import { openDuckdbEngine } from './duckdb/duckdb-engine.ts';
import type { IngestedRange } from './engine.ts';
import { Queries } from './queries.ts';
import type { QueryRecord } from './query-store.ts';
import type { LakeTables } from './tables.ts';

const organization = { id: 'o1', name: 'acme' };
const hour = 3_600_000;
const firstHour = Date.parse('2026-01-01T00:00:00Z');
const files = 4;

/** Four files of a topic, one an hour, and a note of what was asked for. */
async function smallLake(directory: string) {
  const connection = await (await DuckDBInstance.create()).connect();
  for (let index = 0; index < files; index += 1) {
    const path = join(directory, `hour${index}.parquet`);
    const at = new Date(firstHour + index * hour).toISOString().slice(0, 19);
    await connection.run(
      `copy (select i as n, md5(i::varchar) as text, timestamp '${at}' + to_seconds(i) as _ingested_at from range(3000) t(i)) to '${path}' (format parquet)`,
    );
  }
  connection.closeSync();
  const asked: (IngestedRange | undefined)[] = [];
  const flushed: string[] = [];
  const lake: LakeTables = {
    rootOf: () => directory,
    flush: async (_organization, names) => {
      flushed.push(...names);
    },
    tables: async () => [
      {
        name: 'clicks',
        columns: [
          { name: 'n', type: 'bigint' },
          { name: 'text', type: 'varchar' },
          { name: '_ingested_at', type: 'timestamp' },
        ],
      },
    ],
    scan: async (_organization, _name, _signal, range) => {
      asked.push(range);
      const within = Array.from({ length: files }, (_value, index) => index).filter((index) => {
        const begin = firstHour + index * hour;
        return begin <= (range?.to ?? Infinity) && begin + hour > (range?.from ?? -Infinity);
      });
      const paths = within.map((index) => `'hour${index}.parquet'`).join(', ');
      return { sql: `select * from read_parquet([${paths}])`, release: () => {} };
    },
  };
  return { lake, asked, flushed };
}

/** Tests of queries on a database that is opened for them. */
export function queriesSuite(
  name: string,
  open: () => Promise<{ database: Database; close(): Promise<void> }>,
): void {
  describe(`queries on ${name}`, () => {
    let directory: string;
    let database: Database;
    let closeDatabase: () => Promise<void>;
    let clock: AdjustableClock;
    let objects: ObjectStore;
    let lake: Awaited<ReturnType<typeof smallLake>>;
    const opened: Queries[] = [];
    const endless = 'select count(*) from range(100000000000)';
    const ended = ['SUCCEEDED', 'FAILED', 'CANCELLED'];

    async function openQueries(nodeId: string): Promise<Queries> {
      const engine = await openDuckdbEngine({
        scratch: join(directory, `scratch-${nodeId}-${opened.length}`),
        limits: {
          memoryBytes: 256 * 1024 * 1024,
          threads: 1,
          temporaryBytes: 64 * 1024 * 1024,
          resultBytes: 64 * 1024 * 1024,
          milliseconds: 30_000,
        },
        random: systemRandom,
        log: silentLog,
        bubblewrap: 'none',
      });
      const queries = new Queries({
        database,
        objects,
        engine,
        lake: lake.lake,
        topicNames: async () => ['clicks'],
        clock,
        random: systemRandom,
        log: silentLog,
        nodeId,
        concurrency: { ofOne: 2, ofAll: 4 },
      });
      opened.push(queries);
      return queries;
    }

    before(async () => {
      directory = await mkdtemp(join(tmpdir(), 'millrace-queries-'));
      await mkdir(join(directory, 'lake'));
      ({ database, close: closeDatabase } = await open());
      clock = adjustableClock(Date.now());
      const signer = urlSigner(Buffer.alloc(32, 'secret'), () => 'http://localhost');
      objects = await openFileStore({ directory: join(directory, 'objects'), signer });
      lake = await smallLake(join(directory, 'lake'));
      await database.query
        .insertInto('organizations')
        .values({
          id: organization.id,
          name: organization.name,
          name_lower: organization.name,
          rate_limit_level: 'DEFAULT',
          created_at: clock.now(),
          created_by: 'a1',
        })
        .execute();
    });
    after(async () => {
      for (const queries of opened) await queries.close();
      await objects.close();
      await closeDatabase();
      await rm(directory, { recursive: true, force: true, maxRetries: 5 });
    });

    async function submit(queries: Queries, sql: string): Promise<string> {
      clock.advance(1);
      const submitted = await queries.submit(organization, sql, 'ada');
      assert.ok(!(submitted instanceof Problem), submitted instanceof Problem ? submitted.detail : '');
      return submitted.id;
    }

    async function until(queries: Queries, id: string, states: readonly string[]): Promise<QueryRecord> {
      const end = performance.now() + 30_000;
      for (;;) {
        const record = await queries.status(organization.id, id);
        assert.ok(!(record instanceof Problem));
        if (states.includes(record.state)) return record;
        assert.ok(performance.now() < end, `the query is ${record.state}`);
        assert.ok(!ended.includes(record.state), `the query is ${record.state}: ${record.error}`);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    }

    it('read only the files of the hours that they need', async () => {
      const queries = await openQueries('n1');
      const run = async (sql: string) => {
        const record = await until(queries, await submit(queries, sql), ended);
        assert.equal(record.state, 'SUCCEEDED', record.error ?? '');
        return record.bytesScanned ?? 0;
      };
      const all = await run('select count(distinct text) from clicks');
      const one = await run(
        "select count(distinct text) from Clicks where _ingested_at >= '2026-01-01 02:05' and _ingested_at < '2026-01-01 02:55'",
      );
      assert.deepEqual(lake.asked.at(-1), {
        from: firstHour + 2 * hour + 4 * 60_000,
        to: firstHour + 2 * hour + 56 * 60_000,
      });
      assert.ok(one > 0 && one < all / 3, `${one} bytes of ${all}`);
      assert.ok(lake.flushed.includes('clicks'), 'the topic was flushed');
    });

    it('are cancelled from another node, and seen from there', async () => {
      const [here, there] = [await openQueries('n2'), await openQueries('n3')];
      const id = await submit(here, endless);
      await until(here, id, ['RUNNING']);
      const cancelled = await there.cancel(organization.id, id);
      assert.ok(!(cancelled instanceof Problem));
      assert.equal(cancelled.state, 'CANCELLED');
      assert.equal((await until(here, id, ended)).state, 'CANCELLED');
      assert.equal((await there.history(organization.id, 10))[0]?.id, id);
    });

    it('fail when their node is started again, or does not come back', async () => {
      const [gone, other] = [await openQueries('n4'), await openQueries('n5')];
      const ids = [await submit(gone, endless), await submit(gone, endless), await submit(gone, 'select 1')];
      for (const id of ids.slice(0, 2)) await until(gone, id, ['RUNNING']);
      await gone.beat();
      await other.beat();
      await other.start();
      for (const id of ids.slice(0, 2)) assert.equal((await until(gone, id, ['RUNNING'])).state, 'RUNNING');
      await database.query
        .updateTable('queries')
        .set({ alive_until: 1 })
        .where('node_id', '=', 'n4')
        .execute();
      await other.beat();
      const told = await other.status(organization.id, ids[0] ?? '');
      assert.ok(!(told instanceof Problem) && told.state === 'FAILED');
      assert.match(told.error ?? '', /node that ran the query is gone/);
      const again = await submit(other, endless);
      await until(other, again, ['RUNNING']);
      await other.close();
      const closed = await gone.status(organization.id, again);
      assert.ok(!(closed instanceof Problem) && closed.state === 'FAILED');
      assert.match(closed.error ?? '', /restarted/);
    });

    it('are kept for a week, with their results', async () => {
      const queries = await openQueries('n6');
      const id = await submit(queries, 'select 42 as answer');
      await until(queries, id, ['SUCCEEDED']);
      clock.advance(7 * 24 * hour - 60_000);
      await queries.sweep();
      const page = await queries.results(organization.id, id, { from: 0, limit: 10 });
      assert.ok(!(page instanceof Problem));
      assert.deepEqual(page.rows, [['42']]);
      clock.advance(2 * 60_000);
      await queries.sweep();
      const swept = await queries.results(organization.id, id, { from: 0, limit: 10 });
      assert.ok(swept instanceof Problem && swept.code === 'QUERY_NOT_FOUND');
      assert.deepEqual(await queries.history(organization.id, 10), []);
    });

    it('give long rows page by page, each page no larger than it should be', async () => {
      const queries = await openQueries('n7');
      const id = await submit(queries, "select i, repeat('é', 100000) from range(90) t(i)");
      await until(queries, id, ['SUCCEEDED']);
      const seen: (string | null | undefined)[] = [];
      let from: number | undefined = 0;
      let pages = 0;
      while (from !== undefined) {
        const page: Awaited<ReturnType<Queries['results']>> = await queries.results(organization.id, id, {
          from,
          limit: 1000,
        });
        assert.ok(!(page instanceof Problem));
        for (const row of page.rows) {
          seen.push(row[0]);
          assert.equal(row[1]?.length, 100_000);
        }
        from = page.next;
        pages += 1;
      }
      assert.deepEqual(
        seen,
        Array.from({ length: 90 }, (_value, i) => String(i)),
      );
      assert.equal(pages, 3);
    });

    it('export a row of many pieces without reading it again for each of them', async () => {
      const queries = await openQueries('n8');
      const id = await submit(queries, "select repeat('é', 8000000) as long, 1 as n union all select 'x', 2");
      await until(queries, id, ['SUCCEEDED']);
      const exported = await queries.export(organization.id, id, 'csv');
      assert.ok(!(exported instanceof Problem));
      const startedAt = performance.now();
      let text = '';
      for await (const piece of exported) text += piece;
      assert.equal(text.length, 'long,n\r\n'.length + 8_000_000 + ',1\r\nx,2\r\n'.length);
      assert.ok(performance.now() - startedAt < 5000);
    });

    it('find nothing of the engine under a name that stands for something else elsewhere', async () => {
      const queries = await openQueries('n9');
      for (const name of ['pg_settings', 'duckdb_views', 'hour0.parquet']) {
        const inside = `select * from (with "${name}" as (select 1) select * from "${name}") a`;
        const trespass = await submit(queries, `${inside}, "${name}" b`);
        const { error } = await until(queries, trespass, ['FAILED']);
        assert.match(error ?? '', /Table with name .* does not exist/);
        await until(queries, await submit(queries, inside), ['SUCCEEDED']);
      }
    });
  });
}
