import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { defaultLimits } from '@millrace/contract';
import type { Database } from '../database/database.ts';
import { organization } from '../database/rows.suite.ts';
import { openSqliteDatabase } from '../database/sqlite/sqlite-database.ts';
import { EventLogFullError, type EventRecord } from '../events/events.ts';
import { partitionOf } from '../events/partition.ts';
import { adjustableClock } from '../platform/clock.ts';
import { Problem } from '../platform/problem.ts';
import { systemRandom } from '../platform/random.ts';
import type { StoreKey } from '../topics/definition.ts';
import { Topics } from '../topics/topics.ts';
import { Ingest } from './ingest.ts';
import { type LogSite, openLog } from './log.fixture.ts';

const minute = 60_000;
const organizationId = 'o1';

describe('the door to the event log', { timeout: 60_000 }, () => {
  const clock = adjustableClock(Date.UTC(2026, 10, 15, 9, 30));
  let directory: string;
  let database: Database;
  let topics: Topics;
  let site: LogSite;
  let ingest: Ingest;
  /** The topics that somebody was told to follow for their stores. */
  const followed: string[] = [];
  /** The bytes that the lake was told of, by topic. */
  const inLake: [topicName: string, bytes: number][] = [];
  const doorTo = ({ log }: LogSite) => {
    const stores = { follow: (_id: string, topicName: string) => followed.push(topicName) };
    const lake = { follow: (_id: string, name: string, bytes: number) => inLake.push([name, bytes]) };
    return new Ingest({ topics, log, stores, lake, clock, random: systemRandom, limits: defaultLimits });
  };
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'millrace-ingest-'));
    const onFatal = (error: Error) => {
      throw error;
    };
    database = await openSqliteDatabase({ path: join(directory, 'millrace.db'), clock, onFatal });
    await database.query.insertInto('organizations').values(organization(organizationId)).execute();
    topics = new Topics(database, clock);
    site = await openLog({ clock });
    ingest = doorTo(site);
  });
  after(async () => {
    await site.close();
    await database.close();
    await rm(directory, { recursive: true });
  });

  const publication = (topicName: string, body: string, mediaType = 'application/json') => ({
    organizationId,
    topicName,
    mediaType,
    encoding: undefined,
    body: Buffer.from(body),
  });
  function good<Outcome>(outcome: Outcome | Problem): Outcome {
    if (outcome instanceof Problem) assert.fail(outcome.detail);
    return outcome;
  }
  async function recordsOf(topicName: string): Promise<EventRecord[]> {
    const address = { organizationId, topicName };
    const found: EventRecord[] = [];
    for (const { partition } of await site.log.bounds(address)) {
      found.push(...(await site.log.read({ ...address, partition }, 0, { records: 1000, bytes: 1e9 })));
    }
    return found;
  }

  it('stamps a message with its routes as they are when it is accepted', async () => {
    const publish = async () => good(await ingest.publish(publication('routed', '{}'), { messageKey: 'k' }));
    await publish();
    good(await topics.setTopic(organizationId, 'routed', { streams: [{ name: 'x' }] }, undefined));
    await publish();
    good(await topics.deleteTopic(organizationId, 'routed', undefined));
    await publish();
    assert.deepEqual(
      (await recordsOf('routed')).map(({ routes }) => routes),
      [
        { streams: ['routed'], lake: true, store: false },
        { streams: ['x'], lake: false, store: false },
        { streams: ['routed'], lake: true, store: false },
      ],
    );
  });

  it('tells the lake of the bytes that go there, and of no others', async () => {
    inLake.length = 0;
    good(await topics.setTopic(organizationId, 'untold', { streams: [] }, undefined));
    good(await ingest.publish(publication('untold', '{}'), { messageKey: 'k' }));
    good(await ingest.publish(publication('told', '{"a":1}'), { messageKey: 'k' }));
    good(await ingest.publishMany(publication('told', '[{},{}]'), {}));
    assert.deepEqual(inLake, [
      ['told', 7],
      ['told', 7],
    ]);
  });

  it('says which topics need their store to be followed before it accepts a message', async () => {
    const key: StoreKey = { tableType: 'PRIMARY', pkParts: ['id'], rangePrefix: '' };
    good(await topics.setTopic(organizationId, 'stored', { store: { keys: [key], ttlInSec: 9 } }, undefined));
    good(await ingest.publish(publication('plain', '{}'), { messageKey: 'k' }));
    good(await ingest.publish(publication('stored', '{}'), { messageKey: 'k' }));
    good(await ingest.publishMany(publication('stored', '[{}]'), {}));
    assert.deepEqual(followed, ['stored', 'stored']);
    assert.deepEqual(
      (await recordsOf('stored')).map(({ routes }) => routes),
      Array(2).fill({ streams: [], lake: false, store: true }),
    );
  });

  it('keeps what was sent, when, and of what type', async () => {
    good(await topics.setTopic(organizationId, 'kept', { streams: [{ name: 'x' }] }, undefined));
    const body = '\ufeff any \0 text';
    const sent = publication('kept', body, 'Text/Plain; charset=utf-8');
    good(await ingest.publish(sent, { messageKey: 'k', messageId: 'i' }));
    const [record] = await recordsOf('kept');
    assert.ok(record);
    const { key, id, acceptedAt, mediaType } = record;
    assert.deepEqual([key, id, acceptedAt, mediaType], ['k', 'i', clock.now(), 'text/plain']);
    assert.deepEqual(
      Buffer.from(record.body),
      Buffer.from(body),
      'where nothing is read, nothing is left out',
    );
  });

  it('knows an id for five minutes at least, and takes it again some time later', async () => {
    const publish = async () =>
      good(await ingest.publish(publication('seen', '{}'), { messageKey: 'k', messageId: 'again' }))
        .duplicate;
    assert.equal(await publish(), false);
    for (const wait of [1, 4 * minute, minute]) {
      clock.advance(wait);
      assert.equal(await publish(), true, `${wait} later`);
    }
    clock.advance(60 * minute);
    assert.equal(await publish(), false);
  });

  it('spreads messages without a key and keeps those of a key together', async () => {
    const lines = (topicName: string, count: number) => ({
      ...publication(
        topicName,
        Array.from({ length: count }, (_value, n) => `{"n":${n},"k":"one"}`).join('\n'),
      ),
      mediaType: 'application/x-ndjson',
    });
    good(await ingest.publishMany(lines('spread', 200), {}));
    assert.ok((await site.log.bounds({ organizationId, topicName: 'spread' })).length > 8);
    good(await ingest.publishMany(lines('together', 200), { messageKeyPath: '/k' }));
    const bounds = await site.log.bounds({ organizationId, topicName: 'together' });
    assert.deepEqual(
      bounds.map(({ partition, last }) => [partition, last]),
      [[partitionOf('one'), 200]],
    );
    const numbers = (await recordsOf('together')).map(
      ({ body }) => JSON.parse(Buffer.from(body).toString()).n,
    );
    assert.deepEqual(
      numbers,
      Array.from({ length: 200 }, (_value, n) => n),
    );
  });

  it('appends the good messages of a batch, each with its own bytes, and tells of the others', async () => {
    const array = publication('batch', '[{"k":"a"}, {"k":null} ,{"k":"b" }, 3]');
    const outcome = good(await ingest.publishMany(array, { messageKeyPath: '/k' }));
    assert.deepEqual(
      [outcome.accepted, outcome.duplicates, outcome.rejected, outcome.errors.map(({ index }) => index)],
      [2, 0, 2, [1, 3]],
    );
    const bodies = (await recordsOf('batch')).map(({ body }) => Buffer.from(body).toString());
    assert.deepEqual(bodies.sort(), ['{"k":"a"}', '{"k":"b" }']);
  });

  it('refuses what the log has no room for, and takes it when it is asked again', async () => {
    const small = await openLog({ clock, limits: { entries: 20 } });
    try {
      const door = doorTo(small);
      await topics.get(organizationId);
      const publish = (n: number) =>
        door.publish(publication('full', '{}'), { messageKey: 'k', messageId: `full-${n}` });
      const outcomes = await Promise.allSettled(Array.from({ length: 100 }, (_value, n) => publish(n)));
      const refused = outcomes.flatMap((outcome, n) => (outcome.status === 'rejected' ? [n] : []));
      assert.ok(refused.length > 0 && refused.length < 100, `${refused.length} were refused`);
      for (const outcome of outcomes) {
        if (outcome.status === 'rejected') assert.ok(outcome.reason instanceof EventLogFullError);
      }
      for (const n of refused) assert.equal(good(await publish(n)).duplicate, false, 'nothing was accepted');
      const [bounds] = await small.log.bounds({ organizationId, topicName: 'full' });
      assert.equal(bounds?.last, 100);
    } finally {
      await small.close();
    }
  });
});
