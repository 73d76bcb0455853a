import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { Problem } from '../platform/problem.ts';
import { objectKeyOf } from './keys.ts';
import { eventually, good, type LakeSite, openLakeSite, organization, start } from './lake-site.fixture.ts';

const hour = 3_600_000;
const topic = { organizationId: organization.id, topicName: 'clicks' };

describe('the lake', { timeout: 120_000 }, () => {
  let site: LakeSite;
  beforeEach(async () => {
    site = await openLakeSite();
  });
  afterEach(() => site.close());

  const files = async (topicName = 'clicks') =>
    (await site.catalog.snapshot({ ...topic, topicName }))?.files ?? [];
  const count = async (topicName = 'clicks') =>
    Number((await site.query(topicName, 'SELECT count(*) AS n, count(DISTINCT _id) AS d FROM t'))[0]?.n ?? 0);

  it('makes a table of messages, with the types of their fields', async () => {
    await site.publish('clicks', [
      { page: '/a', at: '2026-11-15T09:00:00+01:00', on: '2026-11-15', n: 1, x: 1.5, ok: true },
      { page: '/b', tags: ['a', 'b'], user: { name: 'ada', age: 36 } },
    ]);
    await site.flush('clicks');
    const rows = await site.query('clicks', 'SELECT * FROM t ORDER BY page');
    assert.deepEqual(rows[0]?.at, '2026-11-15 08:00:00');
    assert.deepEqual(rows[1]?.user, { name: 'ada', age: '36' });
    assert.deepEqual(rows[1]?.tags, ['a', 'b']);
    assert.equal(rows[0]?._ingested_at, '2026-11-15 09:30:00');
    const [table] = await site.lake.tables(organization);
    assert.equal(table?.name, 'clicks');
    const types = new Map(table?.columns.map(({ name, type }) => [name, type]));
    assert.deepEqual(
      ['page', 'at', 'on', 'n', 'x', 'ok', 'tags', 'user', '_key', '_ingested_at', '_rescued'].map((name) =>
        types.get(name),
      ),
      [
        'varchar',
        'timestamp',
        'date',
        'bigint',
        'double',
        'boolean',
        'varchar[]',
        'struct(name varchar, age bigint)',
        'varchar',
        'timestamp',
        'json',
      ],
    );
    const [file] = await files();
    assert.match(
      file?.key ?? '',
      /^organization=acme\/topic=clicks\/year=2026\/month=11\/day=15\/hour=09\/[0-9A-Za-z]{22}\.parquet$/,
    );
  });

  it('has everything that was acknowledged before a flush, each message once', async () => {
    for (let round = 1; round <= 5; round += 1) {
      await site.publish(
        'clicks',
        Array.from({ length: 100 }, (_value, n) => ({ round, n })),
      );
      await site.flush('clicks', 'clicks', 'nothing-of-that-name');
      assert.equal(await count(), round * 100);
    }
    const [sums] = await site.query('clicks', 'SELECT sum(n)::BIGINT AS s, count(DISTINCT _id) AS d FROM t');
    assert.deepEqual(sums, { s: String(5 * 4950), d: '500' });
  });

  it('writes files by itself, after some time or some bytes', async () => {
    await site.reopen({ fileMilliseconds: 50 });
    await site.publish('clicks', [{ a: 1 }]);
    await eventually('a file', async () => ((await files()).length > 0 ? true : undefined));
    await site.reopen({ fileBytes: 10_000 });
    await site.publish(
      'big',
      Array.from({ length: 200 }, () => ({ filling: 'x'.repeat(100) })),
    );
    await eventually('files', async () => ((await files('big')).length > 0 ? true : undefined));
    await site.flush('big');
    assert.equal(await count('big'), 200);
  });

  it('takes up what was published before it started, and what was left by a crash', async () => {
    await site.publish('clicks', [{ a: 1 }, { a: 2 }]);
    await site.reopen();
    await eventually('a file', async () => ((await files()).length > 0 ? true : undefined));
    assert.equal(await count(), 2);
    await site.publish('clicks', [{ a: 3 }]);
    await site.reopen();
    await site.flush('clicks');
    assert.equal(await count(), 3);
  });

  it('is one lake on several nodes, each of which writes its share', async () => {
    const first = site.lake;
    await site.publish(
      'clicks',
      Array.from({ length: 100 }, (_value, n) => ({ n })),
    );
    const second = await site.join();
    for (let round = 0; round < 3; round += 1) {
      await site.publish(
        'clicks',
        Array.from({ length: 100 }, (_value, n) => ({ n, [`f${round}_${n % 5}`]: n })),
      );
      const asked = round % 2 === 0 ? second : first;
      await asked.flush(organization, ['clicks'], AbortSignal.timeout(30_000));
      assert.equal(await count(), (round + 2) * 100);
    }
    const [row] = await site.query('clicks', 'SELECT count(DISTINCT _id) AS d, count(f2_4) AS f FROM t');
    assert.deepEqual(row, { d: '400', f: '20' });
    const ids = (await site.catalog.table(topic))?.columns.map(({ id }) => id) ?? [];
    assert.equal(new Set(ids).size, ids.length);
  });

  it('writes only what goes to the lake', async () => {
    good(await site.topics.setTopic(organization.id, 'clicks', { streams: [{ name: 's' }] }, undefined));
    await site.publish('clicks', ['no JSON at all']);
    good(await site.topics.setTopic(organization.id, 'clicks', { batch: {} }, undefined));
    await site.publish('clicks', [{ a: 1 }]);
    await site.flush('clicks');
    good(await site.topics.setTopic(organization.id, 'clicks', {}, undefined));
    await site.publish('clicks', ['nor this']);
    await site.flush('clicks');
    assert.equal(await count(), 1);
  });

  it('puts the messages of each hour into files of their own', async () => {
    for (let n = 0; n < 5; n += 1) {
      await site.publish('clicks', [{ n }, { n }]);
      site.clock.advance(hour);
    }
    await site.flush('clicks');
    // The writer may have begun on its own, so an hour may have more than one file.
    const rows = new Map<number, number>();
    for (const file of await files()) rows.set(file.hour, (rows.get(file.hour) ?? 0) + file.rows);
    assert.deepEqual(
      [...rows].sort(([one], [other]) => one - other),
      Array.from({ length: 5 }, (_value, n) => [start - hour / 2 + n * hour, 2]),
    );
    const range = { from: start + hour, to: start + 2 * hour };
    const scan = await site.lake.scan(organization, 'clicks', undefined, range);
    const read = (scan?.files ?? []).reduce((sum, file) => sum + file.rows, 0);
    assert.equal(read, 4, 'files of other hours are not read');
  });

  it('reads old files by a new schema without rewriting any', async () => {
    await site.publish('clicks', [{ a: '5', b: 1, c: 'x' }]);
    await site.flush('clicks');
    const before = (await files()).map((file) => file.key);
    const schema = JSON.stringify({
      type: 'object',
      properties: { b: { type: 'string' }, a: { type: 'integer' }, e: { type: 'number' } },
    });
    assert.equal(good(await site.lake.updateSchema(organization, 'clicks', schema)), 'changed');
    assert.equal(good(await site.lake.updateSchema(organization, 'clicks', ` ${schema}`)), 'same');
    assert.equal(good(await site.lake.schema(organization, 'clicks')), schema);
    await site.publish('clicks', [
      { a: 6, b: 'y', c: 'rescued', e: 1.5 },
      { a: 'no number', b: 7 },
    ]);
    await site.flush('clicks');
    const rows = await site.query('clicks', 'SELECT * EXCLUDE (_key, _id, _ingested_at) FROM t ORDER BY _id');
    assert.deepEqual(rows, [
      { b: '1', a: '5', e: null, _rescued: null },
      { b: 'y', a: '6', e: 1.5, _rescued: '{"c":"rescued"}' },
      { b: null, a: null, e: null, _rescued: '{"a":"no number","b":7}' },
    ]);
    assert.equal((await files()).filter((file) => before.includes(file.key)).length, 1);
    const [table] = await site.lake.tables(organization);
    assert.deepEqual(
      table?.columns.slice(0, 3).map(({ name, type }) => ({ name, type })),
      [
        { name: 'b', type: 'varchar' },
        { name: 'a', type: 'bigint' },
        { name: 'e', type: 'double' },
      ],
    );

    const inferred = JSON.parse(
      good(await site.lake.recalculateSchema(organization, 'clicks', AbortSignal.timeout(20_000))),
    );
    assert.deepEqual(Object.keys(inferred.properties).sort(), ['a', 'b', 'c', 'e']);
    assert.deepEqual(inferred.properties.c, { type: ['string', 'null'] });
    const after = await site.query('clicks', 'SELECT c FROM t ORDER BY _id');
    assert.deepEqual(
      after.map((row) => row.c),
      ['x', 'rescued', null],
    );
    await site.publish('clicks', [{ new: true }]);
    await site.flush('clicks');
    assert.equal((await site.query('clicks', 'SELECT "new" FROM t WHERE "new"')).length, 1);
    assert.deepEqual(
      (await site.catalog.schemas(topic)).map(({ version, origin }) => [version, origin]),
      [
        [1, 'uploaded'],
        [2, 'inferred'],
      ],
    );
  });

  it('infers what the messages look like', async () => {
    await site.publish('clicks', [
      {
        id: 1,
        at: '2026-11-15T09:00:00Z',
        user: { name: 'ada', age: 1 },
        tags: ['a'],
        any: 1,
        d: '2026-01-01',
      },
      { id: 2, at: '2026-11-15T09:00:01Z', user: { name: 'bob' }, tags: ['b'], any: { x: 1 }, d: null },
    ]);
    const text = good(await site.lake.recalculateSchema(organization, 'clicks', AbortSignal.timeout(20_000)));
    const schema = JSON.parse(text);
    assert.equal(schema.type, 'object');
    assert.deepEqual(schema.properties.id, { type: 'integer' });
    assert.deepEqual(schema.properties.at, { type: 'string', format: 'date-time' });
    assert.deepEqual(schema.properties.d, { type: ['string', 'null'], format: 'date' });
    assert.deepEqual(schema.properties.user, {
      type: 'object',
      properties: { name: { type: 'string' }, age: { type: ['integer', 'null'] } },
      required: ['name'],
    });
    assert.deepEqual(schema.properties.tags, { type: 'array', items: { type: 'string' } });
    assert.deepEqual(schema.required.toSorted(), ['at', 'id', 'tags', 'user']);
    assert.equal(good(await site.lake.schema(organization, 'clicks')), text);
    assert.equal(
      good(await site.lake.recalculateSchema(organization, 'clicks', AbortSignal.timeout(20_000))),
      text,
    );
    assert.equal((await site.catalog.schemas(topic)).length, 1, 'the same again is no new version');
    const empty = good(
      await site.lake.recalculateSchema(organization, 'silent', AbortSignal.timeout(20_000)),
    );
    assert.deepEqual(JSON.parse(empty).properties, {});
  });

  it('merges the small files of an hour, and a query sees every row once at any time', async () => {
    for (let n = 0; n < 12; n += 1) {
      await site.publish('clicks', n % 3 === 0 ? [{ n, extra: 'x' }] : [{ n }]);
      await site.flush('clicks');
    }
    assert.equal((await files()).length, 12);
    const old = await site.lake.scan(organization, 'clicks');
    const watching = new AbortController();
    const watched = (async () => {
      while (!watching.signal.aborted) assert.equal(await count(), 12);
    })();
    await site.lake.maintain();
    watching.abort();
    await watched;
    const [merged, ...others] = await files();
    assert.deepEqual([merged?.rows, others.length], [12, 0]);
    assert.equal(await count(), 12);
    const [sums] = await site.query('clicks', 'SELECT sum(n)::BIGINT AS s, count(extra) AS e FROM t');
    assert.deepEqual(sums, { s: '66', e: '4' });
    for (const file of old?.files ?? []) {
      const key = `organization=acme/${file.path}`;
      assert.ok(await site.objects.head(objectKeyOf(key)), 'a query that has begun still finds its files');
    }
    site.clock.advance(hour + 1);
    await site.lake.maintain();
    const kept = (await site.objects.list('lake/', { limit: 100 })).objects;
    assert.equal(kept.length, 1);
    assert.equal(await count(), 12);
  });

  it('loses nothing in a merge, whatever the schema says by then', async () => {
    await site.publish('clicks', [{ a: 'text' }]);
    await site.flush('clicks');
    const integer = { type: 'object', properties: { a: { type: 'integer' } } };
    good(await site.lake.updateSchema(organization, 'clicks', JSON.stringify(integer)));
    await site.publish('clicks', [{ a: 1, other: 'o' }]);
    await site.flush('clicks');
    await site.publish('clicks', [{ a: 2 }]);
    await site.flush('clicks');
    site.clock.advance(2 * hour);
    await site.lake.maintain();
    assert.equal((await files()).length, 2, 'what cannot be merged without loss is not');
    good(await site.lake.recalculateSchema(organization, 'clicks', AbortSignal.timeout(20_000)));
    const rows = await site.query('clicks', 'SELECT a, other FROM t ORDER BY _id');
    assert.deepEqual(rows, [
      { a: '"text"', other: null },
      { a: '1', other: 'o' },
      { a: '2', other: null },
    ]);
  });

  it('lets files go that are past the retention of their topic', async () => {
    good(await site.topics.setTopic(organization.id, 'clicks', { batch: { retentionInDays: 2 } }, undefined));
    await site.publish('clicks', [{ n: 1 }]);
    site.clock.advance(24 * hour);
    await site.publish('clicks', [{ n: 2 }]);
    await site.publish('kept', [{ n: 2 }]);
    await site.flush('clicks', 'kept');
    site.clock.advance(24 * hour);
    await site.lake.maintain();
    assert.equal(await count(), 2);
    site.clock.advance(hour);
    await site.lake.maintain();
    assert.deepEqual(await site.query('clicks', 'SELECT n FROM t'), [{ n: '2' }]);
    site.clock.advance(30 * 24 * hour);
    await site.lake.maintain();
    assert.equal(await count(), 0);
    assert.equal(await count('kept'), 1);
    assert.equal((await site.lake.tables(organization)).length, 2, 'the table stays');
    site.clock.advance(2 * hour);
    await site.lake.maintain();
    assert.equal((await site.objects.list('lake/', { limit: 100 })).objects.length, 1);
  });

  it('deletes the files of a deleted topic after a while, unless it is defined again', async () => {
    for (const name of ['clicks', 'orders']) {
      good(await site.topics.setTopic(organization.id, name, { batch: {} }, undefined));
      await site.publish(name, [{ n: 1 }]);
      await site.flush(name);
      good(await site.topics.deleteTopic(organization.id, name, undefined));
    }
    site.clock.advance(hour);
    await site.publish('clicks', [{ n: 2 }]);
    await site.flush('clicks');
    site.clock.advance(22 * hour);
    await site.lake.maintain();
    assert.equal(await count(), 2);
    good(await site.topics.setTopic(organization.id, 'orders', { batch: {} }, undefined));
    site.clock.advance(2 * hour);
    await site.lake.maintain();
    assert.deepEqual(await site.query('clicks', 'SELECT n FROM t'), [{ n: '2' }], 'what came later stays');
    assert.equal(await count('orders'), 1);
  });

  it('forgets a deleted topic that has no files left', async () => {
    good(await site.topics.setTopic(organization.id, 'clicks', { batch: {} }, undefined));
    await site.publish('clicks', [{ n: 1 }]);
    await site.flush('clicks');
    good(await site.lake.updateSchema(organization, 'clicks', '{"type":"object"}'));
    good(await site.topics.deleteTopic(organization.id, 'clicks', undefined));
    site.clock.advance(25 * hour);
    await site.lake.maintain();
    site.clock.advance(2 * hour);
    await site.lake.maintain();
    assert.deepEqual(await site.lake.tables(organization), []);
    assert.ok((await site.lake.schema(organization, 'clicks')) instanceof Problem);
    await site.publish('clicks', [{ other: 1 }]);
    await site.flush('clicks');
    assert.deepEqual(await site.query('clicks', 'SELECT other FROM t'), [{ other: '1' }]);
  });

  it('sweeps files that never got a row, and no others', async () => {
    await site.publish('clicks', [{ n: 1 }]);
    await site.flush('clicks');
    const folder = 'lake/organization=acme/topic=clicks/year=2026/month=11/day=15/hour=09';
    await site.objects.put(`${folder}/orphan.parquet`, Buffer.from('x'));
    await site.objects.put(
      'lake/organization=gone/topic=a/year=2026/month=11/day=15/hour=09/o.parquet',
      Buffer.from('x'),
    );
    await site.objects.put('lake/readme', Buffer.from('x'));
    await site.objects.put('code/orphan.parquet', Buffer.from('x'));
    const keys = async () => (await site.objects.list('', { limit: 100 })).objects.map(({ key }) => key);
    site.clock.set(Date.now());
    await site.lake.maintain();
    assert.equal((await keys()).length, 5);
    site.clock.advance(2 * hour);
    await site.lake.maintain();
    const left = await keys();
    assert.deepEqual(
      left.filter((key) => !key.endsWith('.parquet')),
      ['lake/readme'],
    );
    assert.ok(left.includes('code/orphan.parquet'));
    assert.equal(left.length, 3);
    assert.equal(await count(), 1);
  });
});
