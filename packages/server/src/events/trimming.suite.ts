import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { addressOf, entry, newTopic, offsetsOf, readAll, type Site } from './entries.suite.ts';
import type { EventLog, PartitionAddress, TopicAddress } from './events.ts';

export function trimmingSuite(createSite: () => Promise<Site>): void {
  describe('bounds and trimming', () => {
    let site: Site;
    let log: EventLog;
    let topic: TopicAddress;
    let address: PartitionAddress;
    beforeEach(async () => {
      site = await createSite();
      log = await site.open();
      topic = newTopic();
      address = addressOf(entry(topic));
    });
    afterEach(() => site.remove());

    const append = (count: number) =>
      offsetsOf(
        log,
        Array.from({ length: count }, () => entry(topic)),
      );
    const offsets = async (after = 0) => (await readAll(log, address, after)).map((record) => record.offset);
    async function bounds() {
      const found = (await log.bounds(topic)).find(({ partition }) => partition === address.partition);
      assert.ok(found !== undefined);
      return found;
    }

    test('the bounds of a partition are around its records', async () => {
      const appended = [...(await append(3)), ...(await append(4))];
      const { trimmedThrough, last } = await bounds();
      assert.equal(last, appended.at(-1));
      assert.ok(trimmedThrough < (appended[0] ?? 0));
      assert.deepEqual(await offsets(trimmedThrough), appended);
    });

    test('trimming removes what is before and at an offset, inside a call or at its end', async () => {
      const appended = [...(await append(5)), ...(await append(5)), ...(await append(5))];
      for (const count of [1, 3, 5, 6, 12]) {
        const through = appended[count - 1] ?? 0;
        await log.trim(address, through);
        assert.deepEqual(await offsets(), appended.slice(count));
        assert.deepEqual(await offsets(appended[count + 1]), appended.slice(count + 2));
        const { trimmedThrough, last } = await bounds();
        assert.ok(trimmedThrough >= through && trimmedThrough < (appended[count] ?? 0));
        assert.equal(last, appended.at(-1));
      }
    });

    test('trimming less than before, nothing, or where nothing is, changes nothing', async () => {
      const appended = await append(6);
      await log.trim(address, appended[3] ?? 0);
      await log.trim(address, appended[1] ?? 0);
      await log.trim(address, 0);
      assert.deepEqual(await offsets(), appended.slice(4));
      await log.trim({ ...newTopic(), partition: 1 }, 100);
    });

    test('offsets go on growing after everything was trimmed, also when opened again', async () => {
      const first = await append(3);
      await log.trim(address, first.at(-1) ?? 0);
      assert.deepEqual(await offsets(), []);
      const second = await append(2);
      assert.ok((second[0] ?? 0) > (first.at(-1) ?? 0));
      await log.trim(address, second.at(-1) ?? 0);
      await log.close();
      log = await site.open();
      const third = await append(2);
      assert.ok((third[0] ?? 0) > (second.at(-1) ?? 0));
      assert.deepEqual(await offsets(), third);
    });

    test('trimming past the end leaves what is yet to come', async () => {
      const before = await append(3);
      await log.trim(address, (before.at(-1) ?? 0) + 1_000_000);
      const after = await append(3);
      assert.deepEqual(await offsets(), after);
    });

    test('a trimmed topic is still a topic, and other partitions are as they were', async () => {
      const other = entry(topic, { partition: (address.partition + 1) % 16 });
      const kept = await offsetsOf(log, [other]);
      const [offset = 0] = await append(1);
      await log.trim(address, offset);
      assert.deepEqual(await log.topics(topic.organizationId), [topic]);
      assert.deepEqual(
        (await readAll(log, addressOf(other))).map((record) => record.offset),
        kept,
      );
    });

    test('what is trimmed stays so when the log is opened again', async () => {
      const appended = await append(10);
      await log.trim(address, appended[6] ?? 0);
      const before = await bounds();
      await log.close();
      log = await site.open();
      assert.deepEqual(await bounds(), before);
      assert.deepEqual(await offsets(), appended.slice(7));
    });

    test('reading while trimming never shows a record twice or out of order', async () => {
      const appended: number[] = [];
      for (let round = 0; round < 20; round += 1) appended.push(...(await append(50)));
      let trimmed = 0;
      const trimming = (async () => {
        for (const through of appended.filter((_, index) => index % 77 === 0)) {
          await log.trim(address, through);
          trimmed = through;
        }
      })();
      const seen: number[] = [];
      for (;;) {
        const before = trimmed;
        const page = await log.read(address, seen.at(-1) ?? 0, { records: 30, bytes: 1_000_000 });
        if (page.length === 0) break;
        for (const { offset } of page) assert.ok(offset > before, 'a trimmed record was read');
        seen.push(...page.map((record) => record.offset));
      }
      await trimming;
      const first = appended.indexOf(seen[0] ?? 0);
      // What was trimmed before it was reached may be missing; from the last trim on all is there.
      assert.deepEqual(
        seen.filter((offset) => offset > trimmed),
        appended.filter((offset) => offset > trimmed),
      );
      assert.ok(first >= 0);
      assert.deepEqual(
        seen,
        appended.filter((offset) => seen.includes(offset)),
      );
    });

    test('the offset at a time is of a record accepted by then, and none later is before it', async () => {
      const start = Date.now();
      const times = Array.from({ length: 10 }, (_, index) => start + index * 1_000);
      const appended: number[] = [];
      for (const acceptedAt of times) {
        appended.push(...(await offsetsOf(log, [entry(topic, { acceptedAt })])));
      }
      assert.equal(await log.offsetAt(address, start - 60_000), 0);
      for (const [index, time] of times.entries()) {
        const found = await log.offsetAt(address, time + 500);
        assert.ok(found <= (appended[index] ?? 0), `${found} at record ${index}`);
      }
      const end = await log.offsetAt(address, start + 3_600_000);
      assert.ok(end > 0 && end <= (appended.at(-1) ?? 0));
    });

    test('the offset at a time holds also where the clock went back', async () => {
      const start = Date.now();
      const times = [start, start + 5_000, start + 1_000, start + 2_000, start + 6_000];
      const appended: number[] = [];
      for (const acceptedAt of times) {
        appended.push(...(await offsetsOf(log, [entry(topic, { acceptedAt })])));
      }
      for (const time of [start, start + 1_500, start + 5_500]) {
        const found = await log.offsetAt(address, time);
        const through = times.filter((_, index) => (appended[index] ?? 0) <= found);
        assert.ok(through.every((acceptedAt) => acceptedAt <= time));
      }
    });
  });
}
