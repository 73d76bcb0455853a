import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { sql } from 'kysely';
import { announcementSuite } from './announcements.suite.ts';
import type { Database } from './database.ts';
import { DatabaseUnavailableError, isForeignKeyViolation, isUniqueViolation } from './errors.ts';
import { migrations } from './migrations/index.ts';
import type { Migration } from './migrations/migration.ts';
import { account, oneOfEach, organization, session, tables } from './rows.suite.ts';
import { transactionSuite } from './transactions.suite.ts';

/** An empty place for a database, used by one test. */
export interface Site {
  /** Opens the database there, also a second time while it is open where the engine allows it. */
  open(migrations?: readonly Migration[]): Promise<Database>;
  /** Closes what is open and removes the place. */
  remove(): Promise<void>;
}

/** What every engine of the database port must do. */
export function databaseSuite(name: string, createSite: () => Promise<Site>): void {
  describe(name, { timeout: 120_000 }, () => {
    let site: Site;
    let database: Database;
    beforeEach(async () => {
      site = await createSite();
      database = await site.open();
    });
    afterEach(() => site.remove());

    test('opening again changes nothing', async () => {
      const applied = await database.query.selectFrom('migrations').selectAll().orderBy('name').execute();
      assert.deepEqual(
        applied.map((row) => row.name),
        migrations.map((migration) => migration.name),
      );
      await database.query.insertInto('accounts').values(account('kept')).execute();
      await database.close();
      database = await site.open();
      assert.deepEqual(
        await database.query.selectFrom('migrations').selectAll().orderBy('name').execute(),
        applied,
      );
      assert.equal((await database.query.selectFrom('accounts').select('id').execute()).length, 1);
    });

    test('a new migration is applied to a database in use', async () => {
      await database.query.insertInto('accounts').values(account('kept')).execute();
      await database.close();
      const later: Migration = {
        name: '9999-later',
        up: async ({ transaction }) => {
          await transaction.updateTable('accounts').set({ username: 'migrated' }).execute();
        },
      };
      database = await site.open([...migrations, later]);
      const row = await database.query.selectFrom('accounts').select('username').executeTakeFirst();
      assert.equal(row?.username, 'migrated');
    });

    test('a migration that fails leaves nothing behind', async () => {
      await database.close();
      const broken: Migration = {
        name: '9999-broken',
        up: async ({ createTable, text, transaction }) => {
          await createTable('half').addColumn('id', text).execute();
          await transaction.insertInto('accounts').values(account('half')).execute();
          throw new Error('no further');
        },
      };
      await assert.rejects(site.open([...migrations, broken]), /no further/);
      database = await site.open();
      assert.deepEqual(await database.query.selectFrom('accounts').select('id').execute(), []);
      await assert.rejects(sql`select * from half`.execute(database.query), /half/);
    });

    test('a database that a newer version has used is refused by name', async () => {
      await database.query
        .insertInto('migrations')
        .values({ name: '9999-from-the-future', applied_at: 1 })
        .execute();
      await database.close();
      await assert.rejects(site.open(), /"9999-from-the-future".*newer version/);
    });

    test('every table gives back what was put in', async () => {
      assert.deepEqual(Object.keys(oneOfEach), [...tables]);
      await database.query.insertInto('accounts').values(oneOfEach.accounts).execute();
      await database.query.insertInto('recovery_codes').values(oneOfEach.recovery_codes).execute();
      await database.query.insertInto('mailed_codes').values(oneOfEach.mailed_codes).execute();
      await database.query.insertInto('challenges').values(oneOfEach.challenges).execute();
      await database.query.insertInto('sessions').values(oneOfEach.sessions).execute();
      await database.query.insertInto('refresh_tokens').values(oneOfEach.refresh_tokens).execute();
      await database.query.insertInto('signing_keys').values(oneOfEach.signing_keys).execute();
      await database.query.insertInto('secrets').values(oneOfEach.secrets).execute();
      await database.query.insertInto('token_buckets').values(oneOfEach.token_buckets).execute();
      await database.query.insertInto('known_addresses').values(oneOfEach.known_addresses).execute();
      await database.query.insertInto('organizations').values(oneOfEach.organizations).execute();
      await database.query.insertInto('members').values(oneOfEach.members).execute();
      await database.query.insertInto('api_keys').values(oneOfEach.api_keys).execute();
      await database.query.insertInto('state_entries').values(oneOfEach.state_entries).execute();
      await database.query.insertInto('topic_definitions').values(oneOfEach.topic_definitions).execute();
      await database.query.insertInto('consumers').values(oneOfEach.consumers).execute();
      await database.query.insertInto('consumer_nodes').values(oneOfEach.consumer_nodes).execute();
      await database.query
        .insertInto('consumer_registrations')
        .values(oneOfEach.consumer_registrations)
        .execute();
      await database.query.insertInto('consumer_shares').values(oneOfEach.consumer_shares).execute();
      await database.query.insertInto('parked_messages').values(oneOfEach.parked_messages).execute();
      await database.query.insertInto('dead_letters').values(oneOfEach.dead_letters).execute();
      await database.query.insertInto('lake_tables').values(oneOfEach.lake_tables).execute();
      await database.query.insertInto('lake_layouts').values(oneOfEach.lake_layouts).execute();
      await database.query.insertInto('lake_files').values(oneOfEach.lake_files).execute();
      await database.query.insertInto('lake_schemas').values(oneOfEach.lake_schemas).execute();
      await database.query.insertInto('tasks').values(oneOfEach.tasks).execute();
      await database.query.insertInto('task_versions').values(oneOfEach.task_versions).execute();
      await database.query.insertInto('task_deployments').values(oneOfEach.task_deployments).execute();
      await database.query.insertInto('queries').values(oneOfEach.queries).execute();
      await database.query.insertInto('task_logs').values(oneOfEach.task_logs).execute();
      await database.query.insertInto('task_log_chunks').values(oneOfEach.task_log_chunks).execute();
      for (const table of tables) {
        const rows = await database.query.selectFrom(table).selectAll().execute();
        assert.deepEqual(rows, [oneOfEach[table]], table);
      }
    });

    test('a second row with the same unique key is a unique violation', async () => {
      const { query } = database;
      await query.insertInto('accounts').values(account('a')).execute();
      await assert.rejects(query.insertInto('accounts').values(account('a')).execute(), isUniqueViolation);
      const sameName = account('b', { username_lower: account('a').username_lower });
      await assert.rejects(query.insertInto('accounts').values(sameName).execute(), isUniqueViolation);
      const renamed = query.updateTable('accounts').set({ id: 'a' }).where('id', '=', 'b');
      await query.insertInto('accounts').values(account('b')).execute();
      await assert.rejects(renamed.execute(), isUniqueViolation);
    });

    test('many parallel inserts of one key leave one winner', async () => {
      const outcomes = await Promise.allSettled(
        Array.from({ length: 40 }, (_, index) =>
          database.query
            .insertInto('secrets')
            .values({ name: 'one', value: String(index), created_at: index })
            .execute(),
        ),
      );
      assert.equal(outcomes.filter((outcome) => outcome.status === 'fulfilled').length, 1);
      for (const outcome of outcomes) {
        if (outcome.status === 'rejected')
          assert.ok(isUniqueViolation(outcome.reason), String(outcome.reason));
      }
    });

    test('an address may be shared until one account has confirmed it', async () => {
      const { query } = database;
      const shared = { email_lower: 'shared@example.com' };
      await query
        .insertInto('accounts')
        .values(account('a', { ...shared, confirmed_at: null }))
        .execute();
      await query
        .insertInto('accounts')
        .values(account('b', { ...shared, confirmed_at: null }))
        .execute();
      await query.updateTable('accounts').set({ confirmed_at: 1 }).where('id', '=', 'a').execute();
      const second = query.updateTable('accounts').set({ confirmed_at: 1 }).where('id', '=', 'b');
      await assert.rejects(second.execute(), isUniqueViolation);
    });

    test('a row that points nowhere is refused and goes with what it points to', async () => {
      const { query } = database;
      await assert.rejects(
        query.insertInto('sessions').values(session('s', 'nobody')).execute(),
        isForeignKeyViolation,
      );
      await query.insertInto('accounts').values(account('a1')).execute();
      await query.insertInto('organizations').values(organization('o1')).execute();
      await query.insertInto('sessions').values(oneOfEach.sessions).execute();
      await query.insertInto('refresh_tokens').values(oneOfEach.refresh_tokens).execute();
      await query.insertInto('members').values(oneOfEach.members).execute();
      await query.insertInto('api_keys').values(oneOfEach.api_keys).execute();
      const deleted = await query.deleteFrom('accounts').where('id', '=', 'a1').executeTakeFirst();
      assert.equal(deleted.numDeletedRows, 1n);
      for (const table of ['sessions', 'refresh_tokens', 'members', 'api_keys'] as const) {
        assert.deepEqual(await query.selectFrom(table).selectAll().execute(), [], table);
      }
      assert.equal((await query.selectFrom('organizations').select('id').execute()).length, 1);
    });

    test('numbers come back as numbers, counts and sums included', async () => {
      const { query } = database;
      const largest = Number.MAX_SAFE_INTEGER;
      const bucket = (key: string, full_at: number) => ({ key, full_at });
      await query
        .insertInto('token_buckets')
        .values([bucket('a', largest), bucket('b', -largest), bucket('c', 2 ** 31 + 1), bucket('d', -5)])
        .execute();
      const rows = await query.selectFrom('token_buckets').selectAll().orderBy('key').execute();
      assert.deepEqual(
        rows.map((row) => row.full_at),
        [largest, -largest, 2 ** 31 + 1, -5],
      );
      const summary = await query
        .selectFrom('token_buckets')
        .select((select) => [
          select.fn.countAll<number>().as('count'),
          select.fn.sum<number>('full_at').as('sum'),
          select.fn.max('full_at').as('max'),
        ])
        .executeTakeFirst();
      assert.deepEqual({ ...summary }, { count: 4, sum: 2 ** 31 - 4, max: largest });
      const halved = await query
        .selectFrom('token_buckets')
        .select((select) => select('full_at', '/', 2).as('half'))
        .where('key', '=', 'd')
        .executeTakeFirst();
      assert.equal(halved?.half, -2, 'integers divide as integers');
    });

    test('values that only one engine could store are refused', async () => {
      const { query } = database;
      const insert = (value: string, created_at = 1) =>
        query.insertInto('secrets').values({ name: 'n', value, created_at }).execute();
      await assert.rejects(insert('a\0b'), /NUL/);
      await assert.rejects(insert('value', 2 ** 53), /safe range/);
      await assert.rejects(insert('value', Number.NaN), /safe range/);
      await assert.rejects(insert('value', 1.5));
      await assert.rejects(query.selectFrom('secrets').selectAll().where('name', '=', '\0').execute(), /NUL/);
      assert.deepEqual(await query.selectFrom('secrets').selectAll().execute(), []);
    });

    test('text sorts and compares by its bytes', async () => {
      const names = ['a', 'B', 'ä', 'Z', 'z', '~', 'a b', 'a-b', '漢', '🎈', '\uffee'];
      await database.query
        .insertInto('secrets')
        .values(names.map((name) => ({ name, value: '', created_at: 0 })))
        .execute();
      const rows = await database.query.selectFrom('secrets').select('name').orderBy('name').execute();
      const byBytes = names.toSorted((left, right) => Buffer.compare(Buffer.from(left), Buffer.from(right)));
      assert.deepEqual(
        rows.map((row) => row.name),
        byBytes,
      );
      const after = database.query.selectFrom('secrets').select('name').where('name', '>', 'z');
      assert.equal((await after.execute()).length, 5);
    });

    test('a failed write does not take its neighbours with it', async () => {
      const insert = (name: string) =>
        database.query.insertInto('secrets').values({ name, value: '', created_at: 0 }).execute();
      await insert('taken');
      const outcomes = await Promise.allSettled(['one', 'taken', 'two', 'taken', 'three'].map(insert));
      assert.deepEqual(
        outcomes.map((outcome) => outcome.status),
        ['fulfilled', 'rejected', 'fulfilled', 'rejected', 'fulfilled'],
      );
      const rows = await database.query.selectFrom('secrets').select('name').orderBy('name').execute();
      assert.deepEqual(
        rows.map((row) => row.name),
        ['one', 'taken', 'three', 'two'],
      );
    });

    test('a write that returned is seen by the next read', async () => {
      const { query } = database;
      await query.insertInto('secrets').values({ name: 'n', value: '0', created_at: 0 }).execute();
      for (let round = 1; round <= 100; round++) {
        const value = String(round);
        if (round % 2) await query.updateTable('secrets').set({ value }).execute();
        else {
          await database.transaction((transaction) =>
            transaction.updateTable('secrets').set({ value }).execute(),
          );
        }
        const row = await query.selectFrom('secrets').select('value').executeTakeFirst();
        assert.equal(row?.value, value);
      }
    });

    test('ten thousand rows can be written one by one and in bulk', async () => {
      const rows = Array.from({ length: 10_000 }, (_, index) => ({
        name: `n${index}`,
        value: 'x'.repeat(100),
        created_at: index,
      }));
      for (let start = 0; start < 5_000; start += 500) {
        const some = rows.slice(start, start + 500);
        await Promise.all(some.map((row) => database.query.insertInto('secrets').values(row).execute()));
      }
      await database.transaction(async (transaction) => {
        for (let start = 5_000; start < rows.length; start += 1_000) {
          await transaction
            .insertInto('secrets')
            .values(rows.slice(start, start + 1_000))
            .execute();
        }
      });
      const read = await database.query.selectFrom('secrets').selectAll().orderBy('created_at').execute();
      assert.deepEqual(read, rows);
    });

    test('check answers while the database is open and fails once it is closed', async () => {
      await database.check();
      await database.close();
      await assert.rejects(database.check(), DatabaseUnavailableError);
    });

    test('close waits for what is under way and refuses what comes after', async () => {
      const { query } = database;
      const inside = Promise.withResolvers<void>();
      const mayGoOn = Promise.withResolvers<void>();
      const slow = database.transaction(async (transaction) => {
        await transaction.insertInto('secrets').values({ name: 'slow', value: '', created_at: 0 }).execute();
        inside.resolve();
        await mayGoOn.promise;
        await transaction.updateTable('secrets').set({ value: 'done' }).where('name', '=', 'slow').execute();
      });
      await inside.promise;
      const beside = query
        .insertInto('secrets')
        .values({ name: 'beside', value: '', created_at: 0 })
        .execute();
      // Let it reach the engine's queue, so that it came before the close.
      await query.selectFrom('secrets').select('name').execute();
      let closed = false;
      const closing = database.close().then(() => {
        closed = true;
      });
      await assert.rejects(
        query.insertInto('secrets').values({ name: 'late', value: '', created_at: 0 }).execute(),
        DatabaseUnavailableError,
      );
      assert.equal(closed, false);
      mayGoOn.resolve();
      await Promise.all([slow, beside, closing]);
      await assert.rejects(query.selectFrom('secrets').selectAll().execute(), DatabaseUnavailableError);
      await database.close();
      database = await site.open();
      const rows = await database.query
        .selectFrom('secrets')
        .select(['name', 'value'])
        .orderBy('name')
        .execute();
      assert.deepEqual(
        rows.map((row) => `${row.name} ${row.value}`),
        ['beside ', 'slow done'],
      );
    });

    transactionSuite(() => database);
    announcementSuite(() => database);
  });
}
