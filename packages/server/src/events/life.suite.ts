import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import {
  addressOf,
  assertGrowing,
  entry,
  eventually,
  newTopic,
  offsetsOf,
  readAll,
  type Site,
} from './entries.suite.ts';
import {
  type EventLog,
  EventLogFullError,
  EventLogUnavailableError,
  type PartitionAddress,
  type TopicAddress,
} from './events.ts';

export function lifeSuite(createSite: () => Promise<Site>): void {
  describe('listening, limits and the end', () => {
    let site: Site;
    let topic: TopicAddress;
    let address: PartitionAddress;
    beforeEach(async () => {
      site = await createSite();
      topic = newTopic();
      address = addressOf(entry(topic));
    });
    afterEach(() => site.remove());

    const idsIn = async (log: EventLog) => (await readAll(log, address)).map((record) => record.id);

    test('a listener hears of each partition that was appended to, when the records can be read', async () => {
      const log = await site.open();
      const heard = new Set<string>();
      const early: PartitionAddress[] = [];
      const reads: Promise<void>[] = [];
      log.listen((where) => {
        if (where.organizationId !== topic.organizationId) return;
        heard.add(`${where.topicName} ${where.partition}`);
        const read = log.read(where, 0, { records: 1, bytes: 1 });
        reads.push(read.then((records) => void (records.length === 0 && early.push(where))));
      });
      await log.append([
        entry(topic, { partition: 0 }),
        entry(topic, { partition: 15 }),
        entry({ ...topic, topicName: 'other' }, { partition: 7 }),
      ]);
      await eventually(() => heard.size === 3, 'three partitions');
      await Promise.all(reads);
      assert.deepEqual([...heard].sort(), ['orders 0', 'orders 15', 'other 7']);
      assert.deepEqual(early, []);
    });

    test('whoever no longer listens hears nothing', async () => {
      const log = await site.open();
      const heard = { stays: 0, leaves: 0 };
      const leave = log.listen(() => {
        heard.leaves += 1;
      });
      log.listen(({ organizationId }) => {
        if (organizationId === topic.organizationId) heard.stays += 1;
      });
      leave();
      await log.append([entry(topic)]);
      await eventually(() => heard.stays > 0, 'the one that stays');
      assert.equal(heard.leaves, 0);
    });

    test('more than may wait is refused at once, none of it is appended, and it works again after', async () => {
      const log = await site.open({ entries: 100 });
      const calls = Array.from({ length: 50 }, (_, call) =>
        Array.from({ length: 10 }, (_, index) => entry(topic, { id: `${call}/${index}` })),
      );
      const outcomes = await Promise.allSettled(calls.map((call) => log.append(call)));
      const expected = calls.filter((_, index) => outcomes[index]?.status === 'fulfilled');
      assert.ok(expected.length >= 10 && expected.length < 50, `${expected.length} of 50 were accepted`);
      for (const outcome of outcomes) {
        if (outcome.status === 'rejected') assert.ok(outcome.reason instanceof EventLogFullError);
      }
      await offsetsOf(log, [entry(topic, { id: 'after' })]);
      assert.deepEqual(await idsIn(log), [...expected.flat().map(({ id }) => id), 'after']);
    });

    test('the limit on bytes counts as well, and one call that is larger is let in alone', async () => {
      const log = await site.open({ bytes: 100_000 });
      const large = () => entry(topic, { body: Buffer.alloc(60_000) });
      const outcomes = await Promise.allSettled([log.append([large()]), log.append([large()])]);
      assert.deepEqual(
        outcomes.map(({ status }) => status),
        ['fulfilled', 'rejected'],
      );
      await offsetsOf(log, [entry(topic, { body: Buffer.alloc(150_000) })]);
    });

    test('closing finishes what is under way and refuses what comes after', async () => {
      const log = await site.open();
      const entries = Array.from({ length: 40 }, (_, index) => entry(topic, { id: `${index}` }));
      const appending = Promise.all(entries.map((each) => offsetsOf(log, [each])));
      const reading = log.read(address, 0, { records: 1, bytes: 1 });
      const closing = log.close();
      await assert.rejects(log.append([entry(topic)]), EventLogUnavailableError);
      await assert.rejects(log.read(address, 0, { records: 1, bytes: 1 }), EventLogUnavailableError);
      await assert.rejects(log.check(), EventLogUnavailableError);
      assertGrowing((await appending).flat());
      await reading;
      await closing;
      await log.close();
      const again = await site.open();
      assert.deepEqual(
        await idsIn(again),
        entries.map(({ id }) => id),
      );
    });

    test('what was appended is there when the log is opened again, and offsets go on', async () => {
      const log = await site.open();
      const before = await offsetsOf(log, [entry(topic, { id: 'a' }), entry(topic, { id: 'b' })]);
      await log.close();
      const again = await site.open();
      await again.check();
      const after = await offsetsOf(again, [entry(topic, { id: 'c' })]);
      assertGrowing([...before, ...after]);
      assert.deepEqual(await idsIn(again), ['a', 'b', 'c']);
    });
  });
}
