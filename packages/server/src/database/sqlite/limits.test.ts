import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { type Kysely, sql } from 'kysely';
import { systemClock } from '../../platform/clock.ts';
import type { Database } from '../database.ts';
import { DatabaseBusyError, DatabaseUnavailableError } from '../errors.ts';
import type { Schema } from '../schema.ts';
import { openSqliteDatabase, type SqliteDatabaseOptions } from './sqlite-database.ts';

describe('the SQLite database under pressure', { timeout: 60_000 }, () => {
  let directory: string;
  let database: Database;
  const faults: Error[] = [];

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'millrace-limits-'));
    faults.length = 0;
  });
  afterEach(async () => {
    await database.close();
    await rm(directory, { recursive: true });
  });

  async function open(options: Partial<SqliteDatabaseOptions> = {}): Promise<Database> {
    database = await openSqliteDatabase({
      path: join(directory, 'millrace.db'),
      clock: systemClock,
      onFatal: (error) => faults.push(error),
      ...options,
    });
    return database;
  }

  const insert = (query: Kysely<Schema>, name: string, value = '') =>
    query.insertInto('secrets').values({ name, value, created_at: 0 }).execute();
  const names = async () =>
    (await database.query.selectFrom('secrets').select('name').orderBy('name').execute()).map(
      (row) => row.name,
    );

  /** Keeps a thread busy for a good part of a second. */
  const slow = (query: Kysely<Schema>) =>
    query
      .withRecursive('counter(n)', (counter) =>
        counter
          .selectNoFrom(sql<number>`1`.as('n'))
          .unionAll(
            counter.selectFrom('counter').select(sql<number>`n + 1`.as('n')).where('n', '<', 2_000_000),
          ),
      )
      .selectFrom('counter')
      .select((select) => select.fn.max('n').as('most'))
      .executeTakeFirst();

  test('a slow query does not hold up the event loop', async () => {
    const { query } = await open();
    await database.check();
    const delays = monitorEventLoopDelay({ resolution: 5 });
    delays.enable();
    const started = performance.now();
    assert.equal((await slow(query))?.most, 2_000_000);
    const elapsed = performance.now() - started;
    delays.disable();
    assert.ok(elapsed > 100, `the query took only ${elapsed} ms, which shows nothing`);
    assert.ok(delays.max / 1e6 < elapsed / 2, `held up for ${delays.max / 1e6} ms of ${elapsed} ms`);
  });

  test('reads do not wait for a transaction, however slow', async () => {
    await open();
    const began = Promise.withResolvers<void>();
    let over = false;
    const work = database
      .transaction(async (transaction) => {
        await insert(transaction, 'inside');
        began.resolve();
        await slow(transaction);
      })
      .finally(() => {
        over = true;
      });
    await began.promise;
    for (let count = 0; count < 20; count++) assert.deepEqual(await names(), []);
    assert.equal(over, false);
    await work;
    assert.deepEqual(await names(), ['inside']);
  });

  test('a full disk refuses writes as unavailable, reads go on, and writing resumes by itself', async () => {
    const { query } = await open();
    await insert(query, 'before');
    const pages = (count: number) => sql`pragma max_page_count = ${sql.lit(count)}`.execute(query);
    await pages(1);
    const large = 'x'.repeat(100_000);
    await assert.rejects(insert(query, 'alone', large), DatabaseUnavailableError);
    const together = await Promise.allSettled(['a', 'b', 'c'].map((name) => insert(query, name, large)));
    for (const outcome of together) {
      assert.ok(outcome.status === 'rejected' && outcome.reason instanceof DatabaseUnavailableError);
    }
    const work = database.transaction(async (transaction) => {
      await insert(transaction, 'small');
      await insert(transaction, 'inside', large);
    });
    await assert.rejects(work, DatabaseUnavailableError);
    assert.deepEqual(await names(), ['before']);
    await database.check();
    await pages(1_000_000);
    await insert(query, 'after', large);
    assert.deepEqual(await names(), ['after', 'before']);
    assert.deepEqual(faults, []);
  });

  test('too many waiting writes and one that waits too long are refused as busy', async () => {
    const { query } = await open({ queueLimit: 2, waitMilliseconds: 50 });
    const began = Promise.withResolvers<void>();
    const mayEnd = Promise.withResolvers<void>();
    const work = database.transaction(async (transaction) => {
      await insert(transaction, 'inside');
      began.resolve();
      await mayEnd.promise;
    });
    await began.promise;
    const waiting = Promise.allSettled([
      insert(query, 'a'),
      database.transaction((transaction) => insert(transaction, 'b')),
      insert(query, 'c'),
    ]);
    for (const outcome of await waiting) {
      assert.ok(outcome.status === 'rejected' && outcome.reason instanceof DatabaseBusyError);
    }
    mayEnd.resolve();
    await work;
    await insert(query, 'after');
    assert.deepEqual(await names(), ['after', 'inside']);
  });

  test('a transaction that takes too long is rolled back and lets the others go on', async () => {
    const { query } = await open({ transactionMilliseconds: 300 });
    const mayGoOn = Promise.withResolvers<void>();
    const work = database.transaction(async (transaction) => {
      await insert(transaction, 'stuck');
      await mayGoOn.promise;
      await insert(transaction, 'late');
    });
    const refused = assert.rejects(work, DatabaseBusyError);
    await insert(query, 'other');
    mayGoOn.resolve();
    await refused;
    assert.deepEqual(await names(), ['other']);
  });

  test('work is let in strictly in the order it came', async () => {
    const { query } = await open();
    const order: string[] = [];
    const note = (name: string) => () => order.push(name);
    await Promise.all([
      database.transaction((transaction) => insert(transaction, 'a')).then(note('a')),
      insert(query, 'b').then(note('b')),
      database.transaction((transaction) => insert(transaction, 'c')).then(note('c')),
      insert(query, 'd').then(note('d')),
      insert(query, 'e').then(note('e')),
    ]);
    const rows = await sql<{ name: string }>`select name from secrets order by rowid`.execute(query);
    assert.deepEqual(
      rows.rows.map((row) => row.name),
      order,
    );
  });

  test('a transaction begun by hand does not stay open for others to fall into', async () => {
    const { query } = await open();
    await sql`begin immediate`.execute(query);
    await insert(query, 'kept');
    await sql`rollback`.execute(query).catch(() => {});
    assert.deepEqual(await names(), ['kept']);
  });

  test('a directory that does not exist is a clear error', async () => {
    await assert.rejects(open({ path: join(directory, 'missing', 'millrace.db') }), /unable to open/);
    await open();
    await delay(0);
    assert.deepEqual(faults, []);
  });
});
