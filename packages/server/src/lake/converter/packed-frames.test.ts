import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import type { AppendEntry } from '../../events/events.ts';
import { openSqliteEventLog } from '../../events/sqlite/sqlite-event-log.ts';
import { systemClock } from '../../platform/clock.ts';
import { batchesOf } from './frames.ts';
import { BatchRooms, packedBatches } from './packed-frames.ts';

it('packed records travel as the same bytes as records one by one, without those that are not for the lake', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'millrace-packed-'));
  const log = await openSqliteEventLog({
    directory,
    clock: systemClock,
    onFatal: (error) => {
      throw error;
    },
  });
  try {
    const address = { organizationId: 'o', topicName: 't', partition: 3 };
    const keys = ['plain', 'wi"th', 'back\\slash', 'ünï', '\u0001', 'x'.repeat(300), '日本', ' '];
    const entries = Array.from(
      { length: 9_000 },
      (_value, index): AppendEntry => ({
        ...address,
        key: keys[index % keys.length] ?? '',
        id: `id-${index}${index % 11 === 0 ? '"é' : ''}`,
        deduplicate: false,
        acceptedAt: 1_794_700_000_000 + Math.floor(index / 7),
        mediaType: 'application/json',
        routes: { streams: [], lake: index % 5 !== 0, store: index % 2 === 0 },
        body: Buffer.from(JSON.stringify({ index, text: 'é"\n'.repeat(index % 90) })),
      }),
    );
    for (let start = 0; start < entries.length; start += 1000)
      await log.append(entries.slice(start, start + 1000));
    const limits = { records: 20_000, bytes: 64 * 1024 * 1024 };
    const records = await log.read(address, 0, limits);
    const packed = await log.readPacked?.(address, 0, limits);
    assert.ok(packed);
    assert.equal(packed.count, entries.length);
    assert.equal(packed.last, records.at(-1)?.offset);
    const meant = records.filter((record) => record.routes.lake);
    const linesOf = (batches: Iterable<Buffer>) => {
      const lines: string[] = [];
      // One after the other: a batch is good for a while only.
      for (const batch of batches) {
        const text = batch.subarray(8 + 16 * batch.readUInt32LE(4)).toString();
        lines.push(...text.split('\n').slice(0, -1));
      }
      return lines;
    };
    const lines = linesOf(packedBatches(packed, new BatchRooms()));
    assert.equal(lines.length, meant.length);
    assert.deepEqual(lines, linesOf(batchesOf(meant)));
    for (const batch of packedBatches(packed, new BatchRooms()))
      assert.equal(batch.readUInt32LE(0), batch.length - 4);
    const nothing = await log.readPacked?.({ ...address, partition: 4 }, 0, limits);
    assert.ok(nothing);
    assert.deepEqual(
      [nothing.count, nothing.last, [...packedBatches(nothing, new BatchRooms())]],
      [0, undefined, []],
    );
  } finally {
    await log.close();
    await rm(directory, { recursive: true });
  }
});
