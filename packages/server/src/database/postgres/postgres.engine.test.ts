import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { sql } from 'kysely';
import { systemClock } from '../../platform/clock.ts';
import { databaseSuite } from '../database.suite.ts';
import { DatabaseBusyError, DatabaseUnavailableError } from '../errors.ts';
import { migrations } from '../migrations/index.ts';
import { openPostgresDatabase } from './postgres-database.ts';
import { administer, createPostgresSite, type PostgresSite, serverUrl } from './testing.fixture.ts';

const server = serverUrl;
if (server === undefined) {
  test('the PostgreSQL database', { skip: 'MILLRACE_TEST_POSTGRES_URL is not set' });
} else {
  databaseSuite('the PostgreSQL database', () => createPostgresSite(server));
  postgresSuite(server);
}

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  const limit = AbortSignal.timeout(10_000);
  while (!(await holds())) {
    assert.ok(!limit.aborted, 'it did not come to hold in time');
    await delay(5);
  }
}

function postgresSuite(server: string): void {
  describe('several nodes on one PostgreSQL database', { timeout: 120_000 }, () => {
    let site: PostgresSite;
    beforeEach(async () => {
      site = await createPostgresSite(server);
    });
    afterEach(() => site.remove());

    const terminateAll = () =>
      administer(
        site.url,
        `select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and pid <> pg_backend_pid()`,
      );

    test('may migrate it at once', async () => {
      const nodes = await Promise.all(Array.from({ length: 5 }, () => site.open()));
      for (const node of nodes) {
        const rows = await node.query.selectFrom('migrations').select('name').execute();
        assert.equal(rows.length, migrations.length);
      }
    });

    test('hear each other within a second, and themselves once', async () => {
      const [first, second] = await Promise.all([site.open(), site.open()]);
      const heard: string[] = [];
      first.listen('keys', (payload) => heard.push(`first ${payload}`));
      second.listen('keys', (payload) => heard.push(`second ${payload}`));
      second.listen('other', (payload) => heard.push(`other ${payload}`));
      const started = performance.now();
      await first.announce('keys', 'k1\nüber "quoted"');
      assert.equal(heard[0], 'first k1\nüber "quoted"');
      await until(() => heard.length === 2);
      assert.ok(performance.now() - started < 1_000);
      await second.announce('keys', 'k2');
      await until(() => heard.length === 4);
      assert.deepEqual(heard.slice(1), ['second k1\nüber "quoted"', 'second k2', 'first k2']);
      // One more round trip on the same connections would bring an echo, if there were one.
      await first.announce('keys', 'k3');
      await until(() => heard.length >= 6);
      assert.equal(heard.length, 6);
    });

    test('transactions of two nodes on one counter all count', async () => {
      const nodes = await Promise.all([site.open(), site.open()]);
      await nodes[0].query.insertInto('secrets').values({ name: 'n', value: '', created_at: 0 }).execute();
      await Promise.all(
        Array.from({ length: 40 }, (_, index) =>
          nodes[index % 2 === 0 ? 0 : 1].transaction((transaction) =>
            transaction
              .updateTable('secrets')
              .set((set) => ({ created_at: set('created_at', '+', 1) }))
              .execute(),
          ),
        ),
      );
      const row = await nodes[0].query.selectFrom('secrets').select('created_at').executeTakeFirst();
      assert.equal(row?.created_at, 40);
    });

    test('a node goes on after the server dropped all its connections, and knows it may have missed something', async () => {
      const [node, other] = await Promise.all([site.open(), site.open()]);
      let gaps = 0;
      const heard: string[] = [];
      node.listen(
        'keys',
        (payload) => heard.push(payload),
        () => gaps++,
      );
      await Promise.all(Array.from({ length: 10 }, () => node.check()));
      await terminateAll();
      await until(() => gaps === 1);
      await until(() =>
        node.check().then(
          () => true,
          (error) => {
            assert.ok(error instanceof DatabaseUnavailableError, String(error));
            return false;
          },
        ),
      );
      await until(() =>
        other.announce('keys', 'after').then(
          () => true,
          () => false,
        ),
      );
      await until(() => heard.includes('after'));
    });

    test('a connection dropped inside a transaction fails it as unavailable and nothing else', async () => {
      const node = await site.open();
      const work = node.transaction(async (transaction) => {
        await transaction.insertInto('secrets').values({ name: 'n', value: '', created_at: 0 }).execute();
        await terminateAll();
        await transaction.insertInto('secrets').values({ name: 'm', value: '', created_at: 0 }).execute();
      });
      await assert.rejects(work, DatabaseUnavailableError);
      const idle = node.transaction(async (transaction) => {
        await transaction.insertInto('secrets').values({ name: 'n', value: '', created_at: 0 }).execute();
        await terminateAll();
        // No query is under way when the connection drops.
        await delay(50);
      });
      await assert.rejects(idle, DatabaseUnavailableError);
      assert.deepEqual(await node.query.selectFrom('secrets').selectAll().execute(), []);
    });

    test('a query past its time limit and one too many in the queue are busy', async () => {
      const node = await openPostgresDatabase({
        url: site.url,
        clock: systemClock,
        connections: 1,
        queueLimit: 1,
        statementMilliseconds: 200,
      });
      const sleep = sql`select pg_sleep(10)`.execute(node.query);
      const outcomes = await Promise.allSettled([sleep, node.check(), node.check(), node.check()]);
      const reasons = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []));
      assert.equal(outcomes[0]?.status, 'rejected');
      assert.ok(reasons.length >= 2);
      for (const reason of reasons) assert.ok(reason instanceof DatabaseBusyError, String(reason));
      await node.check();
      await node.close();
    });
  });
}
