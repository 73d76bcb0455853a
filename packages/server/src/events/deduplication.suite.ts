import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { entry, newTopic, readTopic, type Site } from './entries.suite.ts';
import type { AppendEntry, EventLog, TopicAddress } from './events.ts';

export function deduplicationSuite(createSite: () => Promise<Site>): void {
  describe('deduplication', () => {
    let site: Site;
    let log: EventLog;
    let topic: TopicAddress;
    beforeEach(async () => {
      site = await createSite();
      log = await site.open();
      topic = newTopic();
    });
    afterEach(() => site.remove());

    const named = (id: string, fields: Partial<AppendEntry> = {}) =>
      entry(topic, { id, deduplicate: true, ...fields });
    const duplicates = async (entries: readonly AppendEntry[]) =>
      (await log.append(entries)).map((outcome) => outcome.duplicate);
    const idsIn = async (address: TopicAddress) =>
      (await readTopic(log, address)).map((record) => record.id).sort();

    test('the same id within a call is appended once', async () => {
      assert.deepEqual(await duplicates([named('a'), named('b'), named('a'), named('a'), named('c')]), [
        false,
        false,
        true,
        true,
        false,
      ]);
      assert.deepEqual(await idsIn(topic), ['a', 'b', 'c']);
    });

    test('the same id in a later call is a duplicate, and its neighbours are not', async () => {
      assert.deepEqual(await duplicates([named('a'), named('b')]), [false, false]);
      assert.deepEqual(await duplicates([named('c'), named('b'), named('d')]), [false, true, false]);
      assert.deepEqual(await duplicates([named('a'), named('b'), named('c'), named('d')]), [
        true,
        true,
        true,
        true,
      ]);
      assert.deepEqual(await idsIn(topic), ['a', 'b', 'c', 'd']);
    });

    test('of many calls at once with the same id one is appended', async () => {
      const outcomes = await Promise.all(Array.from({ length: 30 }, () => duplicates([named('same')])));
      assert.equal(outcomes.flat().filter((duplicate) => !duplicate).length, 1);
      assert.deepEqual(await idsIn(topic), ['same']);
    });

    test('an id belongs to its topic, whatever the key', async () => {
      assert.deepEqual(await duplicates([named('a', { key: 'one' })]), [false]);
      assert.deepEqual(await duplicates([named('a', { key: 'two' }), named('a', { key: 'three' })]), [
        true,
        true,
      ]);
    });

    test('the same id in another topic or another organization is none', async () => {
      const otherTopic = { ...topic, topicName: 'other' };
      const otherOrganization = newTopic();
      const all = [topic, otherTopic, otherOrganization];
      const entries = all.map((address) => entry(address, { id: 'a', deduplicate: true }));
      assert.deepEqual(await duplicates(entries), [false, false, false]);
      for (const address of all) assert.deepEqual(await idsIn(address), ['a']);
    });

    test('an id that nobody chose is never a duplicate', async () => {
      const unnamed = () => named('a', { deduplicate: false });
      assert.deepEqual(await duplicates([unnamed(), unnamed()]), [false, false]);
      assert.deepEqual(await duplicates([named('a')]), [false]);
      assert.deepEqual(await duplicates([unnamed()]), [false]);
    });

    test('ids that look alike are different', async () => {
      const ids = ['a', 'A', 'a ', ' a', 'á', 'a\u0301', '', '1', '01', 'x'.repeat(1_024), 'x'.repeat(1_023)];
      const some = ids.filter((id) => id !== '');
      assert.deepEqual(
        await duplicates(some.map((id) => named(id))),
        some.map(() => false),
      );
      assert.deepEqual(
        await duplicates(some.map((id) => named(id))),
        some.map(() => true),
      );
    });

    test('an id is remembered when the log is opened again', async () => {
      await log.append([named('a'), named('b')]);
      await log.close();
      log = await site.open();
      assert.deepEqual(await duplicates([named('b'), named('c')]), [true, false]);
      await log.close();
      log = await site.open();
      assert.deepEqual(await duplicates([named('a'), named('c')]), [true, true]);
      assert.deepEqual(await idsIn(topic), ['a', 'b', 'c']);
    });

    test('an id is remembered when its record is trimmed', async () => {
      const [outcome] = await log.append([named('a')]);
      assert.ok(outcome !== undefined && !outcome.duplicate);
      await log.trim({ ...topic, partition: named('a').partition }, outcome.offset);
      assert.deepEqual(await duplicates([named('a')]), [true]);
    });

    test('an id is forgotten when the window has passed', async () => {
      assert.deepEqual(await duplicates([named('a')]), [false]);
      await site.passDeduplicationWindow();
      assert.deepEqual(await duplicates([named('a'), named('a')]), [false, true]);
      assert.deepEqual(await idsIn(topic), ['a', 'a']);
    });
  });
}
