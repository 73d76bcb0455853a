import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import type { Database } from '../database/database.ts';
import { type EventLog, partitionCount } from '../events/events.ts';
import type { Consumer } from './consumer.ts';
import {
  consumer,
  fragile,
  message,
  type NodeOptions,
  openTestEvents,
  organizationId,
  quick,
  startNode,
  textOf,
  until,
} from './consumers.fixture.ts';
import type { ConsumerRunner } from './runner.ts';

export interface Site {
  readonly database: Database;
  /** The same database as another node has it open, where the engine allows it. */
  another?(): Promise<Database>;
  close(): Promise<void>;
}

/** What several nodes on one database must do, whichever engine it is. */
export function nodesSuite(name: string, open: () => Promise<Site>): void {
  describe(name, { timeout: 120_000 }, () => {
    let database: Database;
    let site: Site;
    let events: EventLog;
    let closeEvents: () => Promise<void>;
    const runners: ConsumerRunner[] = [];
    const start = (nodeId: string, options: NodeOptions = {}, way: Database = database) => {
      const runner = startNode(way, events, nodeId, options);
      runners.push(runner);
      return runner;
    };
    const another = async () => (await site.another?.()) ?? database;
    const everyPartition = (text: string) =>
      Array.from({ length: partitionCount }, (_, partition) => message(`k${partition}`, text, { partition }));
    const sharesOf = async (runner: ConsumerRunner) => (await runner.figures.read())[0]?.shares ?? 0;
    const shareRows = () => database.query.selectFrom('consumer_shares').selectAll().execute();

    beforeEach(async () => {
      site = await open();
      database = site.database;
      ({ events, close: closeEvents } = await openTestEvents());
    });
    afterEach(async () => {
      await Promise.all(runners.splice(0).map((runner) => runner.close()));
      await closeEvents();
      await site.close();
    });

    test('nodes that come get their part, and what a node leaves is taken at once', async () => {
      await events.append(everyPartition('1'));
      let count = 0;
      const one = consumer(async (batch) => {
        count += batch.length;
        return [];
      });
      // A lease so long that nothing in this test can come from its end.
      const timings = { leaseMilliseconds: 60_000 };
      const first = start('n1', { timings });
      first.register(one);
      await until('all with the first', async () => (await sharesOf(first)) === 16);
      const second = start('n2', { timings }, await another());
      second.register(one);
      await until('half each', async () => (await sharesOf(first)) === 8 && (await sharesOf(second)) === 8);
      const third = start('n3', { timings }, await another());
      third.register(one);
      await until('a third each', async () => {
        const parts = await Promise.all([first, second, third].map(sharesOf));
        return (
          parts.reduce((sum, part) => sum + part, 0) === 16 && parts.every((part) => part >= 4 && part <= 6)
        );
      });
      await until('all handled once', () => count === 16);
      await second.close();
      await first.close();
      await until('all with the third', async () => (await sharesOf(third)) === 16, 5_000);
      await events.append(everyPartition('2'));
      await until('all handled', () => count === 32);
      assert.equal(count, 32, 'moving a share in peace repeats nothing');
    });

    test('a node that has not registered a consumer gets none of it', async () => {
      await events.append(everyPartition('1'));
      const first = start('n1');
      start('n2').register(
        consumer(async () => [], { id: `task/${organizationId}/other`, wants: () => false }),
      );
      first.register(consumer(async () => []));
      await until('all with the first', async () => (await sharesOf(first)) === 16);
      await until('stays so', async () => (await shareRows()).every((row) => row.holder?.startsWith('n1.')));
    });

    test("a dead node's shares move when its lease has passed", async () => {
      await events.append(everyPartition('1'));
      const seen: string[] = [];
      const handle: Consumer['handle'] = async (batch) => {
        seen.push(...batch.map(({ record }) => textOf(record)));
        return [];
      };
      const way = fragile(database);
      const [first, second] = [start('n1', {}, way), start('n2', {}, await another())];
      first.register(consumer(handle));
      second.register(consumer(handle));
      await until('shared', async () => (await sharesOf(first)) === 8 && (await sharesOf(second)) === 8);
      await until('all', () => seen.length === 16);
      way.cut();
      const died = performance.now();
      await events.append(everyPartition('2'));
      await until('moved', async () => (await sharesOf(second)) === 16);
      const took = performance.now() - died;
      assert.ok(took < quick.leaseMilliseconds + 4 * quick.heartbeatMilliseconds + 500, `${took} ms`);
      await until('all again', async () => new Set((await shareRows()).map((row) => row.cursor)).size === 1);
      assert.ok(seen.length >= 32);
    });

    test('a process that starts under the id of a dead one need not wait for the lease to pass', async () => {
      await events.append(everyPartition('1'));
      const timings = { leaseMilliseconds: 60_000 };
      const way = fragile(database);
      const first = start('n1', { timings }, way);
      first.register(consumer(async () => []));
      await until('held', async () => (await sharesOf(first)) === 16);
      way.cut();
      const again = start('n1', { timings });
      again.register(consumer(async () => []));
      await until('taken over', async () => (await sharesOf(again)) === 16, 5_000);
      way.mend();
      await until('the old one noticed', async () => (await sharesOf(first)) === 0);
    });

    test('a node that was frozen past its lease cannot commit what it did', async () => {
      await events.append([message('a', '1'), message('a', '2')]);
      const way = fragile(database);
      let time: number | undefined;
      const frozen = { monotonic: () => time ?? performance.now() };
      const mayGoOn = Promise.withResolvers<void>();
      const seenByFirst: string[] = [];
      const seenBySecond: string[] = [];
      const first = start('n1', frozen, way);
      const committed: string[] = [];
      const commit =
        (node: string): NonNullable<Consumer['commit']> =>
        async (transaction, batch) => {
          committed.push(node);
          await transaction
            .insertInto('secrets')
            .values(batch.map(({ record }) => ({ name: record.id, value: node, created_at: 0 })))
            .execute();
        };
      first.register(
        consumer(
          async (batch) => {
            seenByFirst.push(...batch.map(({ record }) => textOf(record)));
            await mayGoOn.promise;
            return [];
          },
          { commit: commit('first') },
        ),
      );
      await until('in hand', () => seenByFirst.length === 2);
      // Its time stands still and it hears from nobody, as when a process is stopped and continued.
      time = performance.now();
      way.cut();
      const second = start('n2', {}, await another());
      second.register(
        consumer(
          async (batch) => {
            seenBySecond.push(...batch.map(({ record }) => textOf(record)));
            return [];
          },
          { commit: commit('second') },
        ),
      );
      const secrets = () => database.query.selectFrom('secrets').select('value').execute();
      await until('redelivered', async () => (await secrets()).length === 2);
      const [before] = await shareRows();
      way.mend();
      mayGoOn.resolve();
      await until('the first noticed', async () => ((await first.figures.read())[0]?.inFlight ?? 1) === 0);
      await until('and let go', async () => (await sharesOf(first)) === 0 || (await sharesOf(second)) === 0);
      assert.deepEqual(seenBySecond, ['1', '2']);
      assert.deepEqual(
        (await secrets()).map((row) => row.value),
        ['second', 'second'],
      );
      assert.deepEqual(committed, ['second'], 'the commit of the frozen node did not even begin');
      assert.equal((await shareRows())[0]?.cursor, before?.cursor);
    });

    test('what a consumer commits is there exactly when the cursor has passed', async () => {
      const way = fragile(database);
      const runner = start('n1', { timings: { leaseMilliseconds: 60_000 } }, way);
      let refuse = 3;
      const one = consumer(async () => [], {
        batchSize: 7,
        concurrency: 4,
        maxAttempts: 10,
        commit: async (transaction, batch) => {
          const values = batch.map(({ record }) => ({ name: record.id, value: '', created_at: 0 }));
          await transaction.insertInto('secrets').values(values).execute();
          if (refuse > 0) {
            refuse -= 1;
            throw new Error('refused');
          }
        },
      });
      const registration = runner.register(one);
      for (let round = 0; round < 10; round += 1) {
        await events.append(
          Array.from({ length: 50 }, (_, index) => message(`k${index % 13}`, `${round}.${index}`)),
        );
        if (round % 3 === 1) way.cut();
        await new Promise((resolve) => setTimeout(resolve, 20));
        way.mend();
      }
      const count = async () => (await database.query.selectFrom('secrets').select('name').execute()).length;
      await until('all', async () => (await count()) === 500);
      await until('nothing left', async () => {
        const { lag, parked } = await registration.status();
        return lag === 0 && parked === 0;
      });
      assert.equal(refuse, 0);
      assert.equal((await runner.deadLetters.list(organizationId, one.id, undefined, 10)).letters.length, 0);
    });
  });
}
