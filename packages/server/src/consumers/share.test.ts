import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Entry, Share } from './share.ts';

const address = { organizationId: 'o1', topicName: 'orders', partition: 3 };

function filled(...keys: string[]): Share {
  const share = new Share(address, 10, 1);
  for (const [index, key] of keys.entries()) {
    const offset = 20 + 10 * index;
    share.readThrough = offset;
    const record = {
      offset,
      key,
      id: String(offset),
      acceptedAt: offset,
      mediaType: 'text/plain',
      routes: { streams: [], lake: true, store: false },
      body: Buffer.from('x'),
    };
    share.append({
      share,
      offset,
      key,
      bytes: 1,
      acceptedAt: offset,
      attempts: 0,
      parked: false,
      delivery: { address, record, attempt: 1 },
      state: 'waiting',
    });
  }
  return share;
}

function take(share: Share, call: object, records: number): Entry[] {
  const entries: Entry[] = [];
  share.take(call, entries, records, 1_000);
  return entries;
}

const offsets = (entries: readonly Entry[]) => entries.map((entry) => entry.offset);

describe('a share', () => {
  test('gives a key to one call at a time and other keys past it', () => {
    const share = filled('a', 'a', 'b', 'a', 'c');
    const [first, second] = [{}, {}];
    const one = take(share, first, 1);
    assert.deepEqual(offsets(one), [20]);
    const two = take(share, second, 10);
    assert.deepEqual(offsets(two), [40, 60]);
    assert.equal(share.waiting, 2);
    for (const entry of one) share.settle(entry);
    share.free('a', first);
    assert.deepEqual(offsets(take(share, second, 10)), [30, 50]);
  });

  test('has a cursor up to the first record that is not settled', () => {
    const share = filled('a', 'b', 'c');
    const [first, second, third] = take(share, {}, 3);
    assert.ok(first && second && third);
    assert.equal(share.cursor(), 19);
    share.settle(second);
    assert.equal(share.cursor(), 19);
    share.settle(first);
    assert.equal(share.cursor(), 39);
    assert.equal(share.oldestAcceptedAt(), 40);
    share.settle(third);
    share.readThrough = 77;
    assert.equal(share.cursor(), 77, 'past what was not selected');
    assert.deepEqual([share.unsettled, share.bytes, share.windowSize], [0, 0, 0]);
  });

  test('takes back what a call did not do, in its place', () => {
    const share = filled('a', 'b', 'a');
    const call = {};
    const entries = take(share, call, 2);
    for (const entry of entries) {
      share.free(entry.key, call);
      share.giveBack(entry);
    }
    assert.deepEqual(offsets(take(share, {}, 10)), [20, 30, 40]);
  });

  test('keeps its cursor over many thousand records', () => {
    const share = filled(...Array.from({ length: 5_000 }, (_, index) => `k${index % 7}`));
    let passed = 0;
    for (let round = 0; round < 500; round += 1) {
      const call = {};
      for (const entry of take(share, call, 10)) {
        share.free(entry.key, call);
        share.settle(entry);
        passed = entry.offset;
      }
      assert.ok(share.cursor() >= passed);
    }
    assert.equal(share.cursor(), share.readThrough);
  });

  test('what was not written is written with what came after, which counts more', () => {
    const share = filled('a');
    const row = { ...address, key: 'a', nextAttemptAt: undefined, error: undefined, stored: undefined };
    share.put({ ...row, offset: 1, attempts: 1 });
    share.put({ ...row, offset: 2, attempts: 1 });
    share.unpark(3, 'a');
    const taken = share.takeChanges();
    assert.ok(share.isUnwritten('a'));
    share.unpark(1, 'a');
    share.put({ ...row, offset: 2, attempts: 2 });
    share.restoreChanges(taken);
    assert.deepEqual([...share.changes.deletes].sort(), [1, 3]);
    assert.deepEqual(
      [...share.changes.puts.values()].map((record) => [record.offset, record.attempts]),
      [[2, 2]],
    );
  });
});
