import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import {
  addressOf,
  assertGrowing,
  entry,
  newId,
  newTopic,
  offsetsOf,
  readAll,
  readTopic,
  type Site,
} from './entries.suite.ts';
import { type AppendEntry, type EventLog, type EventRecord, partitionCount } from './events.ts';

export function appendingSuite(createSite: () => Promise<Site>): void {
  describe('appending and reading', () => {
    let site: Site;
    let log: EventLog;
    const topic = newTopic();
    beforeEach(async () => {
      site = await createSite();
      log = await site.open();
    });
    afterEach(() => site.remove());

    async function assertComesBack(appended: AppendEntry): Promise<void> {
      const [offset] = await offsetsOf(log, [appended]);
      const found = (await readAll(log, addressOf(appended))).find((record) => record.offset === offset);
      assert.ok(found !== undefined && offset !== undefined);
      const { key, id, acceptedAt, mediaType, routes, body } = appended;
      assert.deepEqual(
        { ...found, body: Buffer.from(found.body).toString('hex') },
        { offset, key, id, acceptedAt, mediaType, routes, body: Buffer.from(body).toString('hex') },
      );
    }

    test('a record comes back as it was', async () => {
      await assertComesBack(entry(topic, { body: Buffer.from('{"total":12.5}') }));
      await assertComesBack(
        entry(topic, {
          mediaType: 'text/plain; charset="utf-8"',
          routes: { streams: [], lake: false, store: true },
          acceptedAt: 1_700_000_000_123,
        }),
      );
      await assertComesBack(
        entry(topic, { routes: { streams: ['a', 'b-2', 'c.d'], lake: false, store: false } }),
      );
    });

    test('a body may be empty, any bytes, and a mebibyte', async () => {
      await assertComesBack(entry(topic, { body: new Uint8Array(0) }));
      await assertComesBack(entry(topic, { body: Uint8Array.from({ length: 256 }, (_, byte) => byte) }));
      const large = new Uint8Array(1024 * 1024).map((_, index) => (index * 31) % 251);
      await assertComesBack(entry(topic, { body: large }));
      const inTheMiddle = new Uint8Array(Buffer.from('before and after').buffer, 0, 6);
      await assertComesBack(entry(topic, { body: inTheMiddle }));
    });

    test('a body may be changed by its owner once it is durable', async () => {
      const body = Buffer.from('first');
      await offsetsOf(log, [entry(topic, { body })]);
      body.write('other');
      await offsetsOf(log, [entry(topic, { body })]);
      const bodies = (await readAll(log, addressOf(entry(topic)))).map((record) =>
        String(Buffer.from(record.body)),
      );
      assert.deepEqual(bodies, ['first', 'other']);
    });

    test('keys and ids are any text', async () => {
      const texts = [
        ' ',
        'ключ',
        '鍵-🔑',
        'a\u0000b\n',
        'é'.repeat(500),
        'x'.repeat(1024),
        '../..',
        'a.*.>',
        '"\\',
      ];
      for (const text of texts) await assertComesBack(entry(topic, { key: text, id: text }));
    });

    test('topics whose names are alike are kept apart', async () => {
      const names = ['a', 'A', 'a.b', 'a.b.c', 'a-b', 'a_b', 'aa', '0', 'x'.repeat(128), 'a.B'];
      const { organizationId } = newTopic();
      await log.append(names.map((topicName) => entry({ organizationId, topicName }, { key: topicName })));
      for (const topicName of names) {
        const records = await readTopic(log, { organizationId, topicName });
        assert.deepEqual(
          records.map((record) => record.key),
          [topicName],
        );
      }
      const found = (await log.topics(organizationId)).map((address) => address.topicName);
      assert.deepEqual(found.sort(), [...names].sort());
    });

    test('organizations see nothing of each other', async () => {
      const [mine, other] = [newTopic(), newTopic()];
      await log.append([entry(mine, { key: 'mine' }), entry(other, { key: 'other' })]);
      for (const [address, key] of [
        [mine, 'mine'],
        [other, 'other'],
      ] as const) {
        const records = await readTopic(log, address);
        assert.deepEqual(
          records.map((record) => record.key),
          [key],
        );
        assert.deepEqual(await log.topics(address.organizationId), [address]);
      }
      const all = await log.topics();
      for (const address of [mine, other]) {
        assert.ok(all.some(({ organizationId }) => organizationId === address.organizationId));
      }
    });

    test('a partition keeps the order of a call, and its offsets grow', async () => {
      const entries = Array.from({ length: 500 }, (_, index) => entry(topic, { key: 'k', id: `${index}` }));
      const offsets = await offsetsOf(log, entries);
      assertGrowing(offsets);
      const records = await readAll(log, addressOf(entry(topic, { key: 'k' })));
      assert.deepEqual(
        records.map(({ offset, id }) => ({ offset, id })),
        entries.map(({ id }, index) => ({ offset: offsets[index], id })),
      );
    });

    test('calls that are made one after the other keep their order without waiting', async () => {
      const calls = Array.from({ length: 200 }, (_, index) => [
        entry(topic, { key: 'k', id: `${index}a` }),
        entry(topic, { key: 'k', id: `${index}b` }),
      ]);
      const offsets = await Promise.all(calls.map((call) => offsetsOf(log, call)));
      assertGrowing(offsets.flat());
      const records = await readAll(log, addressOf(entry(topic, { key: 'k' })));
      assert.deepEqual(
        records.map((record) => record.id),
        calls.flat().map((each) => each.id),
      );
    });

    test('many callers at once lose nothing and keep the order of each key', async () => {
      const callers = 64;
      const each = 20;
      await Promise.all(
        Array.from({ length: callers }, async (_, caller) => {
          for (let number = 0; number < each; number += 1) {
            await offsetsOf(log, [entry(topic, { key: `caller ${caller}`, id: `${caller}/${number}` })]);
          }
        }),
      );
      const numbers = Map.groupBy(await readTopic(log, topic), (record) => record.key);
      assert.equal(numbers.size, callers);
      for (const [key, records] of numbers) {
        assert.deepEqual(
          records.map((record) => Number(record.id.split('/')[1])),
          Array.from({ length: each }, (_, number) => number),
          `the order of ${key}`,
        );
      }
    });

    test('one call may reach all partitions of many topics', async () => {
      const { organizationId } = newTopic();
      const topics = Array.from({ length: 10 }, (_, number) => ({ organizationId, topicName: `t${number}` }));
      const entries = topics.flatMap((address) =>
        Array.from({ length: 2 * partitionCount }, (_, index) =>
          entry(address, { partition: index % partitionCount, id: `${index}` }),
        ),
      );
      await offsetsOf(log, entries);
      for (const address of topics) {
        assert.equal((await log.bounds(address)).length, partitionCount);
        for (let partition = 0; partition < partitionCount; partition += 1) {
          const records = await readAll(log, { ...address, partition });
          assert.deepEqual(
            records.map((record) => record.id),
            [`${partition}`, `${partition + partitionCount}`],
          );
        }
      }
    });

    test('there may be a thousand topics', async () => {
      const { organizationId } = newTopic();
      const addresses = Array.from({ length: 1_000 }, (_, number) => ({
        organizationId,
        topicName: `topic-${number}`,
      }));
      for (let start = 0; start < addresses.length; start += 100) {
        const some = addresses.slice(start, start + 100);
        await offsetsOf(
          log,
          some.map((address) => entry(address, { key: address.topicName })),
        );
      }
      assert.equal((await log.topics(organizationId)).length, 1_000);
      for (const address of addresses.filter((_, index) => index % 50 === 0)) {
        const records = await readTopic(log, address);
        assert.deepEqual(
          records.map((record) => record.key),
          [address.topicName],
        );
      }
    });

    test('nothing appended is nothing, and nothing read where nothing is', async () => {
      assert.deepEqual(await log.append([]), []);
      const nowhere = { ...newTopic(), partition: 3 };
      assert.deepEqual(await log.read(nowhere, 0, { records: 10, bytes: 1_000 }), []);
      assert.deepEqual(await log.bounds(nowhere), []);
      assert.deepEqual(await log.topics(nowhere.organizationId), []);
      assert.equal(await log.offsetAt(nowhere, Date.now()), 0);
    });

    test('a read gives as many as fit and at least one', async () => {
      const body = Buffer.alloc(1_000, 'x');
      const entries = Array.from({ length: 30 }, () => entry(topic, { body }));
      const offsets = await offsetsOf(log, entries);
      const address = addressOf(entry(topic));
      const count = async (after: number, records: number, bytes: number) =>
        (await log.read(address, after, { records, bytes })).length;
      assert.equal(await count(0, 7, 1_000_000), 7);
      assert.equal(await count(0, 1, 1), 1);
      assert.equal(await count(0, 100, 1), 1);
      const some = await count(0, 100, 3_500);
      assert.ok(some === 3 || some === 4, `${some} records of 1,000 bytes for a limit of 3,500`);
      assert.equal(await count(offsets.at(-3) ?? 0, 100, 1_000_000), 2);
      assert.equal(await count(offsets.at(-1) ?? 0, 100, 1_000_000), 0);
    });

    test('a read can go on after any record', async () => {
      const calls = [1, 5, 2, 9].map((size) =>
        Array.from({ length: size }, () => entry(topic, { body: Buffer.alloc(size) })),
      );
      const offsets: number[] = [];
      for (const call of calls) offsets.push(...(await offsetsOf(log, call)));
      for (const [index, offset] of offsets.entries()) {
        const next = await log.read(addressOf(entry(topic)), offset, { records: 3, bytes: 1_000_000 });
        assert.deepEqual(
          next.map((record) => record.offset),
          offsets.slice(index + 1, index + 4),
        );
      }
    });

    test('whoever reads while others append sees each record once and in order', async () => {
      const total = 2_000;
      const address = addressOf(entry(topic, { key: 'k' }));
      const seen: EventRecord[] = [];
      let done = false;
      const reading = (async () => {
        for (;;) {
          const wasDone = done;
          const after = seen.at(-1)?.offset ?? 0;
          const page = await log.read(address, after, { records: 50, bytes: 100_000 });
          seen.push(...page);
          if (page.length === 0 && wasDone) return;
        }
      })();
      for (let number = 0; number < total; ) {
        const calls = [1, 10, 29].map((size) =>
          Array.from({ length: size }, () => entry(topic, { key: 'k', id: `${number++}` })),
        );
        await Promise.all(calls.map((call) => offsetsOf(log, call)));
      }
      done = true;
      await reading;
      assertGrowing(seen.map((record) => record.offset));
      assert.deepEqual(
        seen.map((record) => record.id),
        Array.from({ length: total }, (_, number) => `${number}`),
      );
    });

    test('what was acknowledged can be read at once', async () => {
      const address = addressOf(entry(topic));
      for (let round = 0; round < 50; round += 1) {
        const id = newId();
        const [offset = 0] = await offsetsOf(log, [entry(topic, { id })]);
        const records = await log.read(address, offset - 1, { records: 1, bytes: 1 });
        assert.equal(records[0]?.id, id);
      }
    });
  });
}
