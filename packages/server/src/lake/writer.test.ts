import assert from 'node:assert/strict';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { ConsumerRunner } from '../consumers/runner.ts';
import type { EventRecord } from '../events/events.ts';
import { systemClock } from '../platform/clock.ts';
import { silentLog } from '../platform/log.ts';
import { systemRandom } from '../platform/random.ts';
import { Converter, ConverterError, type LakeRecord, type WriteJob } from './converter.ts';
import { eventually, type LakeSite, openLakeSite, organization } from './lake-site.fixture.ts';
import { RangeReader } from './range-reader.ts';
import { topicWrite } from './topic-write.ts';
import { LakeWriter } from './writer.ts';

const topic = { organizationId: organization.id, topicName: 'clicks' };

describe('the lake writer', { timeout: 120_000 }, () => {
  let site: LakeSite;
  beforeEach(async () => {
    site = await openLakeSite();
  });
  afterEach(() => site.close());

  /** A writer of its own whose converter ends when it meets certain messages. */
  async function withConverter(
    meets: (record: LakeRecord, converter: Converter) => void,
    work: (writer: LakeWriter) => Promise<void>,
  ): Promise<void> {
    await site.stop();
    const directory = join(site.directory, 'lake-scratch', 'write');
    const converter = new Converter({ directory });
    const watched = {
      beginWrite: async (...request: Parameters<Converter['beginWrite']>): Promise<WriteJob> => {
        const job = await converter.beginWrite(...request);
        return {
          send: async (records) => {
            for (const record of records) meets(record, converter);
            await job.send(records);
          },
          sendPacked: async (packed) => {
            const { bytes, places, count, acceptedAt } = packed;
            for (let index = 0; index < count; index += 1) {
              const [keyAt = 0, idAt = 0, bodyAt = 0, end = 0] = places.subarray(4 * index, 4 * index + 4);
              const key = bytes.toString('utf8', keyAt, idAt);
              const id = bytes.toString('utf8', idAt, bodyAt);
              meets(
                { key, id, acceptedAt: acceptedAt[index] ?? 0, body: bytes.subarray(bodyAt, end) },
                converter,
              );
            }
            await job.sendPacked(packed);
          },
          seal: () => job.seal(),
          cancel: () => job.cancel(),
        };
      },
    };
    const runner = new ConsumerRunner({
      database: site.database,
      events: site.events,
      clock: systemClock,
      random: systemRandom,
      log: silentLog,
      nodeId: 'own',
    });
    const writer = new LakeWriter({
      write: topicWrite({
        ...site,
        converter: watched,
        random: systemRandom,
        log: silentLog,
        scratchDirectory: directory,
      }),
      register: (consumer) => runner.registerRanges(consumer),
      log: silentLog,
      fileBytes: 64 * 1024 * 1024,
      fileMilliseconds: 100,
    });
    try {
      writer.follow(topic.organizationId, topic.topicName, 0);
      await work(writer);
    } finally {
      await writer.close();
      await converter.close();
      await runner.close();
    }
  }

  const rowCount = async () => {
    const files = (await site.catalog.snapshot(topic))?.files ?? [];
    return files.reduce((sum, file) => sum + file.rows, 0);
  };

  it('goes on by itself when the converter dies under it', async () => {
    await site.publish(
      'clicks',
      Array.from({ length: 50 }, (_value, n) => ({ n })),
    );
    let kills = 0;
    await withConverter(
      (_record, converter) => {
        if (kills > 0 || converter.processId === undefined) return;
        kills += 1;
        process.kill(converter.processId, 'SIGKILL');
      },
      () => eventually('all rows', async () => ((await rowCount()) === 50 ? true : undefined)).then(() => {}),
    );
    assert.equal(kills, 1);
    const [row] = await site.query('clicks', 'SELECT count(*) AS n, count(DISTINCT _id) AS d FROM t');
    assert.deepEqual(row, { n: '50', d: '50' });
  });

  it('finds the message that brings the converter down, and keeps it as it came', async () => {
    const messages = Array.from({ length: 8 }, (_value, n) => (n === 5 ? { poison: true } : { n }));
    await site.publish('clicks', messages);
    await withConverter(
      (record) => {
        const text = Buffer.from(record.body).toString();
        if (text.startsWith('{"poison"')) throw new ConverterError('The converter ended');
      },
      () => eventually('all rows', async () => ((await rowCount()) === 8 ? true : undefined)).then(() => {}),
    );
    const rows = await site.query('clicks', 'SELECT n, _rescued FROM t ORDER BY _id');
    assert.equal(rows.length, 8);
    assert.equal(rows.filter((row) => row.n !== null).length, 7);
    assert.deepEqual(
      rows.filter((row) => row._rescued !== null).map((row) => JSON.parse(JSON.parse(String(row._rescued)))),
      [{ poison: true }],
    );
  });

  it('adds to a table that changed while it wrote, without a gap or a duplicate', async () => {
    await site.publish('clicks', [{ a: 1 }]);
    let changes = 0;
    const change = async () => {
      changes += 1;
      const schema = { type: 'object', properties: { [`fixed${changes}`]: { type: 'string' } } };
      await site.lake.updateSchema(organization, 'clicks', JSON.stringify(schema));
    };
    let changing: Promise<void> = Promise.resolve();
    await withConverter(
      () => {
        if (changes < 3) changing = changing.then(change);
      },
      () => eventually('all rows', async () => ((await rowCount()) === 1 ? true : undefined)).then(() => {}),
    );
    await changing;
    assert.deepEqual(await site.query('clicks', 'SELECT count(*) AS n FROM t'), [{ n: '1' }]);
  });
});

describe('reading ranges', { timeout: 60_000 }, () => {
  it('takes as much as the limits allow, goes on where it ended, and holds little at a time', async () => {
    const site = await openLakeSite();
    try {
      await site.stop();
      const count = 3_000;
      await site.publish(
        'clicks',
        Array.from({ length: count }, (_value, n) => ({ n, filling: 'x'.repeat(1000) })),
      );
      const cursors = new Map<number, number>();
      const seen = new Set<string>();
      let rounds = 0;
      for (let hasMore = true; hasMore; rounds += 1) {
        const bounds = await site.events.bounds(topic);
        const held = bounds.map(({ partition }) => ({
          address: { ...topic, partition },
          cursor: cursors.get(partition) ?? 0,
        }));
        const reader = new RangeReader(site.events, held, bounds, {
          bytes: 1_000_000,
          records: 500,
          oneByOne: true,
        });
        let bytes = 0;
        const note = (record: EventRecord) => {
          assert.ok(!seen.has(record.id));
          seen.add(record.id);
          bytes += record.body.length;
        };
        for await (const part of reader.parts(AbortSignal.timeout(30_000)))
          if ('records' in part) part.records.forEach(note);
        assert.ok(reader.records <= 500 && bytes < 1_500_000, `${reader.records} records, ${bytes} bytes`);
        for (const { address, through } of reader.moves) cursors.set(address.partition, through);
        hasMore = reader.hasMore;
      }
      assert.equal(seen.size, count);
      assert.ok(rounds >= 6);
    } finally {
      await site.close();
    }
  });
});
