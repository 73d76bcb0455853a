import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import type { Transaction } from 'kysely';
import type { Database } from '../database/database.ts';
import { DatabaseUnavailableError } from '../database/errors.ts';
import type { Schema } from '../database/schema.ts';
import { type EventLog, partitionCount } from '../events/events.ts';
import {
  fragile,
  message,
  type NodeOptions,
  openTestEvents,
  organizationId,
  quick,
  startNode,
  until,
  wayTo,
} from './consumers.fixture.ts';
import type { Site } from './nodes.suite.ts';
import { type RangeConsumer, RangeOutcomeUnknownError, type RangeRegistration } from './ranges.ts';
import type { ConsumerRunner } from './runner.ts';

const calm = { leaseMilliseconds: 60_000 };

/** What range consumers must do on one node and on several, whichever engine the database is. */
export function rangesSuite(name: string, open: () => Promise<Site>): void {
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
    const everyPartition = (text: string, topicName = 'orders') =>
      Array.from({ length: partitionCount }, (_, partition) =>
        message(`k${partition}`, text, { partition, topicName }),
      );
    const rows = () => database.query.selectFrom('secrets').select(['name', 'value']).execute();
    const shareRows = () => database.query.selectFrom('consumer_shares').selectAll().execute();
    const targets = async (topicName = 'orders') =>
      (await events.bounds({ organizationId, topicName })).map(({ partition, last }) => ({
        partition,
        offset: last,
      }));
    const ends = async (registration: RangeRegistration, topicName = 'orders') => {
      const bounds = new Map((await targets(topicName)).map(({ partition, offset }) => [partition, offset]));
      return registration
        .held(topicName)
        .map(({ address }) => ({ address, through: bounds.get(address.partition) ?? 0 }));
    };

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

    test('cursors move together with what is written, or not at all', async () => {
      await events.append(everyPartition('1'));
      const one = start('n1', { timings: calm }).registerRanges(lake());
      await until('held', () => one.held('orders').length === 16);
      assert.deepEqual(one.topics(), ['orders']);
      const moves = await ends(one);
      await assert.rejects(
        one.advance(moves, async (transaction) => {
          await write(transaction, 'a');
          throw new Error('the work failed');
        }),
        /the work failed/,
      );
      assert.deepEqual(await rows(), []);
      assert.ok((await shareRows()).every((row) => row.cursor === 0));
      assert.equal(await one.advance(moves, (transaction) => write(transaction, 'b')), 'moved');
      assert.equal((await rows()).length, 1);
      assert.deepEqual(
        one.held('orders').map(({ cursor }) => cursor),
        moves.map(({ through }) => through),
      );
      await assert.rejects(
        one.advance(
          moves.map(({ address }) => ({ address, through: 0 })),
          async () => {},
        ),
        RangeError,
        'a cursor does not go back',
      );
      const other = { organizationId, topicName: 'other', partition: 1 };
      assert.equal(await one.advance([{ address: other, through: 1 }], async () => {}), 'lost');
    });

    test('advances of the same share come one after the other', async () => {
      await events.append(everyPartition('1'));
      const one = start('n1', { timings: calm }).registerRanges(lake());
      await until('held', () => one.held('orders').length === 16);
      const [held] = one.held('orders');
      assert.ok(held !== undefined);
      const order: number[] = [];
      const outcomes = await Promise.all(
        [1, 2, 3, 4].map((through) =>
          one.advance([{ address: held.address, through }], async (transaction) => {
            await write(transaction, `r${through}`);
            order.push(through);
          }),
        ),
      );
      assert.deepEqual(outcomes, ['moved', 'moved', 'moved', 'moved']);
      assert.deepEqual(order, [1, 2, 3, 4]);
    });

    test('a node that was frozen past its lease changes nothing', async () => {
      await events.append(everyPartition('1'));
      const way = fragile(database);
      let time: number | undefined;
      const frozen = { monotonic: () => time ?? performance.now() };
      const lost: string[] = [];
      const first = start('n1', frozen, way).registerRanges(
        lake({ lost: (topicName) => lost.push(topicName) }),
      );
      await until('held', () => first.held('orders').length === 16);
      const moves = await ends(first);
      time = performance.now();
      way.cut();
      const second = start('n2', {}, await another()).registerRanges(lake());
      await until('taken over', () => second.held('orders').length === 16);
      const mine = second.held('orders').slice(0, 8);
      const theirs = mine.map(({ address }) => ({ address, through: 1 }));
      assert.equal(await second.advance(theirs, (transaction) => write(transaction, 'second')), 'moved');
      const before = await shareRows();
      way.mend();
      assert.equal(first.held('orders').length, 16, 'it does not know yet');
      let began = false;
      const outcome = await first.advance(moves, async (transaction) => {
        began = true;
        await write(transaction, 'first');
      });
      assert.equal(outcome, 'lost');
      assert.equal(began, false, 'its work did not even begin');
      assert.deepEqual(
        (await rows()).map((row) => row.name),
        ['second'],
      );
      const cursors = (list: typeof before) =>
        new Map(list.map((row) => [row.partition, row.cursor] as const));
      assert.deepEqual(cursors(await shareRows()), cursors(before));
      assert.ok(lost.includes('orders'));
    });

    test('when the outcome of a commit is not heard, the versions tell it', async () => {
      await events.append(everyPartition('1'));
      const way = fragile(database);
      const one = start('n1', { timings: calm }, way).registerRanges(lake());
      await until('held', () => one.held('orders').length === 16);
      const moves = await ends(one);
      let runs = 0;
      const advance = one.advance(moves, async (transaction) => {
        runs += 1;
        await write(transaction, 'once');
        // It is committed, and who asked for it does not hear so.
        way.cut();
        setTimeout(() => way.mend(), 80);
      });
      assert.equal(await advance, 'moved');
      assert.equal(runs, 1);
      assert.equal((await rows()).length, 1);
      assert.equal(one.held('orders')[0]?.cursor, moves[0]?.through);
      await events.append(everyPartition('2'));
      assert.equal(await one.advance(await ends(one), async () => {}), 'moved', 'and it goes on from there');
    });

    test('where the versions cannot tell, nobody is told something wrong', async () => {
      await events.append(everyPartition('1'));
      const way = fragile(database);
      const first = start('n1', {}, way).registerRanges(lake());
      await until('held', () => first.held('orders').length === 16);
      const doubtful = first.advance(await ends(first), async (transaction) => {
        await write(transaction, 'first');
        way.cut();
      });
      const second = start('n2', {}, await another()).registerRanges(lake());
      await until('taken over', () => second.held('orders').length === 16);
      way.mend();
      await assert.rejects(doubtful, RangeOutcomeUnknownError);
      assert.equal((await rows()).length, 1);
    });

    test('what was tried in vain before the node was lost is said to be lost', async () => {
      await events.append(everyPartition('1'));
      const way = fragile(database);
      const first = start('n1', {}, way).registerRanges(lake());
      await until('held', () => first.held('orders').length === 16);
      const moves = await ends(first);
      way.cut();
      const doubtful = first.advance(moves, (transaction) => write(transaction, 'first'));
      const second = start('n2', {}, await another()).registerRanges(lake());
      await until('taken over', () => second.held('orders').length === 16);
      way.mend();
      assert.equal(await doubtful, 'lost');
      assert.equal((await rows()).length, 0);
    });

    test('nodes that come get their part, and that of a dead one moves when its lease has passed', async () => {
      await events.append(everyPartition('1'));
      const way = fragile(database);
      const first = start('n1', {}, way).registerRanges(lake());
      await until('all with the first', () => first.held('orders').length === 16);
      const noticed: string[] = [];
      const second = start('n2', {}, await another()).registerRanges(
        lake({ noticed: (topicName) => noticed.push(topicName) }),
      );
      await until('half each', () => first.held('orders').length === 8 && second.held('orders').length === 8);
      assert.ok(noticed.includes('orders'), 'it is told of the backlog');
      way.cut();
      const died = performance.now();
      await until('moved', () => second.held('orders').length === 16);
      const took = performance.now() - died;
      assert.ok(took < quick.leaseMilliseconds + 4 * quick.heartbeatMilliseconds + 500, `${took} ms`);
      await until('the dead one holds nothing', () => first.held('orders').length === 0);
    });

    test('a share that is given up waits for the advance under way', async () => {
      await events.append(everyPartition('1'));
      const one = start('n1', { timings: calm }).registerRanges(lake());
      await until('held', () => one.held('orders').length === 16);
      const mayEnd = Promise.withResolvers<void>();
      const begun = Promise.withResolvers<void>();
      const order: string[] = [];
      const moves = await ends(one);
      const advance = one
        .advance(moves, async (transaction) => {
          await write(transaction, 'a');
          begun.resolve();
          await mayEnd.promise;
        })
        .then((outcome) => order.push(outcome));
      await begun.promise;
      const removed = one.remove().then(() => order.push('removed'));
      await until('given up', () => one.held('orders').length === 0);
      assert.equal(await one.advance(moves, async () => {}), 'lost');
      setTimeout(() => mayEnd.resolve(), 50);
      await Promise.all([advance, removed]);
      assert.deepEqual(order, ['moved', 'removed']);
      const shares = await shareRows();
      assert.ok(shares.every((row) => row.holder === null && row.cursor > 0));
    });

    test('a share that is given up waits for an advance that is being tried again', async () => {
      await events.append(everyPartition('1'));
      let failing = false;
      const way: Database = {
        ...database,
        transaction: async (work) => {
          if (failing) throw new DatabaseUnavailableError('No transactions for a while');
          return await database.transaction(work);
        },
      };
      const one = start('n1', { timings: calm }, way).registerRanges(lake());
      await until('held', () => one.held('orders').length === 16);
      failing = true;
      const advance = one.advance(await ends(one), (transaction) => write(transaction, 'a'));
      const removed = one.remove();
      await until('given up', () => one.held('orders').length === 0);
      setTimeout(() => {
        failing = false;
      }, 100);
      assert.equal(await advance, 'moved');
      await removed;
      assert.ok((await shareRows()).every((row) => row.holder === null && row.cursor > 0));
    });

    test('a share is given up after a while although its advance does not end', async () => {
      await events.append(everyPartition('1'));
      const way = fragile(database);
      const runner = start('n1', { timings: { ...calm, drainMilliseconds: 200 } }, way);
      const one = runner.registerRanges(lake());
      await until('held', () => one.held('orders').length === 16);
      way.cut();
      const advance = one.advance(await ends(one), async () => {});
      const began = performance.now();
      const removed = one.remove();
      await assert.rejects(advance, RangeOutcomeUnknownError);
      await removed;
      assert.ok(performance.now() - began < 2_000);
      way.mend();
    });

    test('waiting for cursors ends right after the commit, on this node and on others', async (context) => {
      await events.append(everyPartition('1'));
      const first = start('n1', { timings: calm }).registerRanges(lake());
      await until('held', () => first.held('orders').length === 16);
      const wanted = await targets();
      const aborted = AbortSignal.timeout(50);
      assert.equal(await first.reached('orders', wanted, aborted), false);
      const other = start('n2', { timings: calm }, await another()).registerRanges(
        lake({ wants: () => false }),
      );
      await until('half each', () => first.held('orders').length === 8);
      await runners.at(-1)?.close();
      await until('all again', () => first.held('orders').length === 16);
      assert.equal(await other.reached('orders', wanted, AbortSignal.timeout(5_000)), false, 'it is closed');
      const third = start('n3', { timings: calm }, await another()).registerRanges(lake());
      await until('half each', () => first.held('orders').length === 8 && third.held('orders').length === 8);
      const signal = AbortSignal.timeout(10_000);
      const times: number[] = [];
      const note = (reached: boolean) => {
        assert.equal(reached, true);
        times.push(performance.now());
      };
      const waits = [first, third].map((one) => one.reached('orders', wanted, signal).then(note));
      assert.equal(await first.advance(await ends(first), async () => {}), 'moved');
      assert.equal(times.length, 0, 'not before the shares of the other node are there as well');
      assert.equal(await third.advance(await ends(third), async () => {}), 'moved');
      const committed = performance.now();
      await Promise.all(waits);
      const took = times.map((time) => time - committed);
      context.diagnostic(`after the commit: ${took.map((time) => time.toFixed(1)).join(' and ')} ms`);
      assert.ok(took.every((time) => time < 150));
      assert.equal(await first.reached('orders', wanted, signal), true);
    });

    test('a topic that is published to for the first time is held at once', async (context) => {
      let wanted = false;
      const one = start('n1').registerRanges(lake({ wants: (topicName) => topicName !== 'later' || wanted }));
      await events.append(everyPartition('1'));
      await until('settled', () => one.held('orders').length === 16);
      const times: number[] = [];
      for (let round = 0; round < 10; round += 1) {
        const topicName = `new-${round}`;
        await events.append([message('a', '1', { topicName }), message('b', '1', { topicName })]);
        const began = performance.now();
        const reached = one.reached(topicName, await targets(topicName), AbortSignal.timeout(5_000));
        await until('held', () => one.held(topicName).length === 2);
        times.push(performance.now() - began);
        assert.equal(await one.advance(await ends(one, topicName), async () => {}), 'moved');
        assert.equal(await reached, true);
      }
      times.sort((left, right) => left - right);
      context.diagnostic(`held after ${times.map((time) => time.toFixed(0)).join(', ')} ms`);
      assert.ok((times[5] ?? 1_000) < 100);
      await events.append([message('a', '1', { topicName: 'later' })]);
      assert.deepEqual(one.held('later'), []);
      // Nothing is appended from here on, and nobody says so; that somebody waits for it is enough.
      wanted = true;
      const began = performance.now();
      const reached = one.reached('later', await targets('later'), AbortSignal.timeout(5_000));
      await until('held', () => one.held('later').length === 1);
      assert.ok(performance.now() - began < quick.pollMilliseconds / 2);
      await one.advance(await ends(one, 'later'), async () => {});
      assert.equal(await reached, true);
    });

    test('a node that does not hear of a new topic holds its part once somebody waits for it', async () => {
      const timings = { ...calm, pollMilliseconds: 60_000 };
      const first = start('n1', { timings }).registerRanges(lake());
      const noticed: string[] = [];
      const deaf = startNode(await another(), { ...wayTo(events), listen: () => () => {} }, 'n2', {
        timings,
      });
      runners.push(deaf);
      const second = deaf.registerRanges(lake({ noticed: (topicName) => noticed.push(topicName) }));
      await events.append(everyPartition('1'));
      await until('the first has its part', () => first.held('orders').length === 8);
      assert.deepEqual(second.held('orders'), []);
      const reached = first.reached('orders', await targets(), AbortSignal.timeout(10_000));
      await until('so has the second', () => second.held('orders').length === 8, 2_000);
      assert.ok(noticed.includes('orders'));
      for (const one of [first, second]) await one.advance(await ends(one), async () => {});
      assert.equal(await reached, true);
    });

    test('what is appended is noticed, and how far behind it is can be seen', async () => {
      const noticed: string[] = [];
      const runner = start('n1');
      const one = runner.registerRanges(lake({ noticed: (topicName) => noticed.push(topicName) }));
      await events.append(everyPartition('1'));
      await until('held', () => one.held('orders').length === 16);
      assert.ok(noticed.length > 0);
      const told = noticed.length;
      await events.append([message('a', '2', { acceptedAt: Date.now() - 5_000 })]);
      await until('noticed', () => noticed.length > told, 1_000);
      const figures = async () => (await runner.figures.read()).find(({ kind }) => kind === 'lake');
      assert.equal((await one.status()).lag, 17);
      assert.equal((await figures())?.lag, 17);
      assert.equal((await figures())?.shares, 16);
      assert.ok(((await figures())?.oldestAgeMilliseconds ?? -1) >= 0);
      await one.advance(await ends(one), async () => {});
      assert.deepEqual(await one.status(), { lag: 0, oldestAgeMilliseconds: 0, parked: 0, inFlight: 0 });
      assert.equal((await figures())?.lag, 0);
      assert.equal((await figures())?.handled, 17);
    });

    test('the log keeps what a range consumer has not passed, also before it has begun', async () => {
      let wants = true;
      const old = (text: string) =>
        everyPartition(text).map((entry) => ({ ...entry, acceptedAt: Date.now() - 1_000 }));
      await events.append(old('1'));
      const runner = start('n1');
      const one = runner.registerRanges(lake({ wants: () => wants }));
      const trimmed = async () =>
        (await events.bounds({ organizationId, topicName: 'orders' })).map((bounds) => bounds.trimmedThrough);
      await runner.trimLog();
      await until('held', () => one.held('orders').length === 16);
      await runner.trimLog();
      assert.deepEqual(new Set(await trimmed()), new Set([0]));
      const moves = await ends(one);
      await events.append(old('2'));
      await one.advance(moves, async () => {});
      await runner.trimLog();
      assert.deepEqual(
        await trimmed(),
        moves.map(({ through }) => through),
      );
      wants = false;
      one.refresh();
      await until('given up', () => one.held('orders').length === 0);
      await runner.trimLog();
      assert.deepEqual(
        await trimmed(),
        moves.map(({ through }) => through),
        'what it has not passed stays also while it does not want it',
      );
    });
  });
}

function lake(other: Partial<RangeConsumer> = {}): RangeConsumer {
  return {
    id: `lake/${organizationId}`,
    organizationId,
    wants: () => true,
    noticed: () => {},
    ...other,
  };
}

async function write(transaction: Transaction<Schema>, name: string): Promise<void> {
  await transaction.insertInto('secrets').values({ name, value: '', created_at: 0 }).execute();
}
