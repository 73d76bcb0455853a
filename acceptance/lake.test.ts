import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { DuckDBInstance, type Json } from '@duckdb/node-api';
import { call } from './harness/client.ts';
import { fresh, newOrganization, newPerson } from './harness/people.ts';
import { lines, type Publisher, publish, publishMany } from './harness/publisher.ts';
import { type RunningService, startService } from './harness/service.ts';
import { eventually } from './harness/waiting.ts';

const waitMilliseconds = 30_000;

describe('the files of a topic', { timeout: 170_000 }, () => {
  let service: RunningService;
  let publisher: Publisher;
  let directory: string;
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'millrace-files-'));
    service = await startService({
      environment: {
        MILLRACE_LAKE_FILE_SECONDS: '1',
        MILLRACE_LAKE_UPKEEP_SECONDS: '1',
        MILLRACE_LAKE_DELETED_TOPIC_HOURS: '0',
      },
    });
    publisher = await newPublisher();
  });
  after(async () => {
    await service.remove();
    await rm(directory, { recursive: true, force: true });
  });

  async function newPublisher(): Promise<Publisher> {
    const person = await newPerson(service);
    const organizationName = await newOrganization(service, person);
    return { url: service.url, token: person.accessToken, organizationName };
  }

  const parts = (topicName: string, who = publisher) => ({
    token: who.token,
    path: { organizationName: who.organizationName, topicName },
  });

  async function list(topicName: string, query: Record<string, string> = {}, who = publisher) {
    const answer = await call(service.url, 'listTopicFiles', { ...parts(topicName, who), query });
    assert.equal(answer.status, 200, answer.text);
    return answer.body;
  }

  async function allFiles(topicName: string, query: Record<string, string> = {}) {
    const files: { key: string; size: number; lastModified: string }[] = [];
    let nextToken: string | undefined;
    do {
      const page = await list(topicName, { ...query, ...(nextToken === undefined ? {} : { nextToken }) });
      files.push(...page.files);
      nextToken = page.nextToken;
    } while (nextToken !== undefined);
    return files;
  }

  async function download(topicName: string, key: string): Promise<string> {
    const answer = await call(service.url, 'getTopicFileDownloadUrl', {
      ...parts(topicName),
      query: { key },
    });
    assert.equal(answer.status, 200, answer.text);
    const response = await fetch(answer.body.url);
    assert.equal(response.status, 200);
    const path = join(directory, `${fresh('file')}.parquet`);
    await writeFile(path, Buffer.from(await response.arrayBuffer()));
    return path;
  }

  /** What all live files of a topic hold, read as anybody would who downloads them. */
  async function rows(topicName: string, sql: string): Promise<Record<string, Json>[]> {
    const paths: string[] = [];
    for (const { key } of await allFiles(topicName)) paths.push(await download(topicName, key));
    const instance = await DuckDBInstance.create(':memory:');
    const connection = await instance.connect();
    const from = `read_parquet([${paths.map((path) => `'${path}'`).join(', ')}], union_by_name = true)`;
    const reader = await connection.runAndReadAll(`WITH t AS (FROM ${from}) ${sql}`);
    const found = reader.getRowObjectsJson();
    connection.closeSync();
    instance.closeSync();
    return found;
  }

  /** Waits until the files hold so many rows; a list of files may be one before a merge. */
  async function landed(topicName: string, count: number): Promise<void> {
    await eventually(
      `${count} rows of ${topicName}`,
      waitMilliseconds,
      async () => {
        if ((await list(topicName)).files.length === 0) return undefined;
        const [row] = await rows(topicName, 'SELECT count(*) AS n, count(DISTINCT _id) AS d FROM t').catch(
          () => [],
        );
        assert.equal(row?.n, row?.d, 'no message is there twice');
        return Number(row?.n) === count ? true : undefined;
      },
      250,
    );
  }

  it('hold its messages as typed columns, soon after they were published', async () => {
    const topic = fresh('typed');
    const message = { page: '/a', at: '2026-11-15T09:00:00Z', n: 5, user: { name: 'ada' }, ok: true };
    await publish(publisher, topic, message, { messageKey: 'k', messageId: 'first' });
    await landed(topic, 1);
    const [row] = await rows(
      topic,
      'SELECT * EXCLUDE (_ingested_at), _ingested_at > now()::TIMESTAMP - INTERVAL 1 HOUR AS recent FROM t',
    );
    assert.deepEqual(row, {
      page: '/a',
      at: '2026-11-15 09:00:00',
      n: '5',
      user: { name: 'ada' },
      ok: true,
      _key: 'k',
      _id: 'first',
      _rescued: null,
      recent: true,
    });
    const [file] = (await list(topic)).files;
    const folder = `organization=${publisher.organizationName}/topic=${topic}/`;
    assert.match(
      file?.key ?? '',
      new RegExp(`^${folder}year=\\d{4}/month=\\d\\d/day=\\d\\d/hour=\\d\\d/\\w+\\.parquet$`),
    );
    assert.ok(
      file !== undefined && file.size > 0 && Math.abs(Date.parse(file.lastModified) - Date.now()) < 60_000,
    );
  });

  it('are listed in pages, by the start of their key in full or after the folder of the topic', async () => {
    const topic = fresh('paged');
    for (let n = 1; n <= 3; n += 1) {
      await publish(publisher, topic, { n });
      await eventually('a file more', waitMilliseconds, async () =>
        (await list(topic)).files.length >= n ? true : undefined,
      );
    }
    const all = (await list(topic)).files.map(({ key }) => key);
    assert.equal(all.length, 3);
    assert.deepEqual(all, all.toSorted());
    assert.deepEqual(
      (await allFiles(topic, { maxResults: '1' })).map(({ key }) => key),
      all,
    );
    const [first = ''] = all;
    const folder = `organization=${publisher.organizationName}/topic=${topic}/`;
    const year = first.slice(folder.length, folder.length + 9);
    for (const prefix of ['', folder, 'organization=', folder.slice(0, -1), year, `${folder}${year}`]) {
      assert.equal((await list(topic, { prefix })).files.length, 3, prefix);
    }
    for (const prefix of [first, first.slice(folder.length)]) {
      assert.equal((await list(topic, { prefix })).files.length, 1, prefix);
    }
    for (const prefix of ['year=1999', 'organization=other/', `${folder}x`, '漢', "' or 1=1", '%', '/']) {
      assert.deepEqual(await list(topic, { prefix }), { files: [] }, prefix);
    }
    const { nextToken = '' } = await list(topic, { maxResults: '1' });
    const refused = [
      [parts(fresh('other')), { nextToken }],
      [parts(topic), { nextToken, prefix: 'year=' }],
      [parts(topic), { nextToken: `${nextToken}x` }],
      [parts(topic, await newPublisher()), { nextToken }],
    ] as const;
    for (const [where, query] of refused) {
      const answer = await call(service.url, 'listTopicFiles', { ...where, query });
      assert.deepEqual([answer.status, answer.body.code], [400, 'TOKEN_INVALID']);
    }
  });

  it('are downloaded without a credential, also in parts, and only by their topic', async () => {
    const topic = fresh('download');
    await publish(publisher, topic, { n: 1 });
    await landed(topic, 1);
    const [file] = (await list(topic)).files;
    const key = file?.key ?? '';
    const answer = await call(service.url, 'getTopicFileDownloadUrl', { ...parts(topic), query: { key } });
    const lifetime = Date.parse(answer.body.expiresAt) - Date.now();
    assert.ok(lifetime > 14 * 60_000 && lifetime <= 15 * 60_000);
    const part = await fetch(answer.body.url, { headers: { range: 'bytes=0-3' } });
    assert.deepEqual([part.status, await part.text()], [206, 'PAR1']);
    for (const wrong of [key.replace('.parquet', ''), `lake/${key}`, `${key}x`, `../${key}`, 'x']) {
      const missing = await call(service.url, 'getTopicFileDownloadUrl', {
        ...parts(topic),
        query: { key: wrong },
      });
      assert.deepEqual([missing.status, missing.body.code], [404, 'FILE_NOT_FOUND'], wrong);
    }
    for (const where of [parts(fresh('other')), parts(topic, await newPublisher())]) {
      const foreign = await call(service.url, 'getTopicFileDownloadUrl', { ...where, query: { key } });
      assert.equal(foreign.status, 404);
    }
  });

  it('are there for topics with batch only', async () => {
    const topic = fresh('streams');
    const defined = await call(service.url, 'updateTopic', { ...parts(topic), body: { streams: [] } });
    assert.equal(defined.status, 200);
    const answers = [
      await call(service.url, 'listTopicFiles', parts(topic)),
      await call(service.url, 'getTopicFileDownloadUrl', { ...parts(topic), query: { key: 'x' } }),
      await call(service.url, 'recalculateTopicSchema', parts(topic)),
    ];
    for (const answer of answers)
      assert.deepEqual([answer.status, answer.body.code], [400, 'BATCH_REQUIRED']);
    const strict = await newPublisher();
    const body = { allowUndefined: false };
    await call(service.url, 'updateDefaultTopic', {
      token: strict.token,
      path: { organizationName: strict.organizationName },
      body,
    });
    const unknown = [
      await call(service.url, 'listTopicFiles', parts('nope', strict)),
      await call(service.url, 'getTopicFileDownloadUrl', { ...parts('nope', strict), query: { key: 'x' } }),
      await call(service.url, 'recalculateTopicSchema', parts('nope', strict)),
      await call(service.url, 'updateTopicSchema', {
        ...parts('nope', strict),
        body: { schema: '{}', format: 'JSON' },
      }),
      await call(service.url, 'getTopicSchema', parts('nope', strict)),
    ];
    for (const answer of unknown) assert.equal(answer.status, 404);
  });

  it('become fewer by merging, and no row is lost or doubled', async () => {
    const topic = fresh('merged');
    let sent = 0;
    for (let n = 0; n < 11; n += 1) {
      const batch = Array.from({ length: 50 }, (_value, index) => JSON.stringify({ n, index })).join('\n');
      await publishMany(publisher, topic, batch, {}, lines);
      sent += 50;
      // A recalculation needs everything that is pending, so it writes a file.
      assert.equal((await call(service.url, 'recalculateTopicSchema', parts(topic))).status, 200);
    }
    await eventually('fewer files', waitMilliseconds, async () =>
      (await list(topic)).files.length < 11 ? true : undefined,
    );
    await landed(topic, sent);
    const [sums] = await rows(topic, 'SELECT sum(n)::BIGINT AS n, sum("index")::BIGINT AS i FROM t');
    assert.deepEqual(sums, { n: String(55 * 50), i: String(1225 * 11) });
  });

  it('go when their topic is deleted', async () => {
    const topic = fresh('deleted');
    assert.equal(
      (await call(service.url, 'updateTopic', { ...parts(topic), body: { batch: {} } })).status,
      200,
    );
    await publish(publisher, topic, { n: 1 });
    await landed(topic, 1);
    assert.equal((await call(service.url, 'deleteTopic', parts(topic))).status, 200);
    await eventually('no files', waitMilliseconds, async () =>
      (await list(topic)).files.length === 0 ? true : undefined,
    );
  });

  describe('with a schema', () => {
    const schemaOf = async (topicName: string) => call(service.url, 'getTopicSchema', parts(topicName));
    const upload = (topicName: string, schema: unknown) =>
      call(service.url, 'updateTopicSchema', {
        ...parts(topicName),
        body: { schema: typeof schema === 'string' ? schema : JSON.stringify(schema), format: 'JSON' },
      });

    it('have the columns that were uploaded, and keep the rest aside', async () => {
      const topic = fresh('schema');
      assert.deepEqual(
        [(await schemaOf(topic)).status, (await schemaOf(topic)).body.code],
        [404, 'SCHEMA_NOT_FOUND'],
      );
      const schema = { type: 'object', properties: { n: { type: 'string' }, a: { type: 'integer' } } };
      assert.equal((await upload(topic, schema)).status, 201);
      assert.equal((await upload(topic, schema)).status, 200);
      assert.deepEqual((await schemaOf(topic)).body, { schema: JSON.stringify(schema), format: 'JSON' });
      await publish(publisher, topic, { n: 'x', a: 'no integer', other: 1 });
      await landed(topic, 1);
      const found = await rows(topic, 'SELECT * EXCLUDE (_key, _id, _ingested_at) FROM t');
      assert.deepEqual(found, [{ n: 'x', a: null, _rescued: '{"a":"no integer","other":1}' }]);
      assert.deepEqual(Object.keys(found[0] ?? {}).slice(0, 2), ['n', 'a']);
      assert.equal((await upload(topic, { type: 'object' })).status, 201);
    });

    it('refuse one that is no JSON Schema', async () => {
      const topic = fresh('schema');
      for (const schema of [
        '{',
        '5',
        '{"type":"text"}',
        '{"type":"string"}',
        '{"properties":{"a":{"type":1}}}',
      ]) {
        const answer = await upload(topic, schema);
        assert.deepEqual([answer.status, answer.body.code], [422, 'SCHEMA_INVALID'], schema);
      }
      assert.equal((await schemaOf(topic)).status, 404);
    });

    it('have one that is inferred from all that was published', async () => {
      const topic = fresh('inferred');
      const messages = [
        { id: 1, at: '2026-11-15T09:00:00Z', price: 1, user: { name: 'ada', tags: ['x'] } },
        { id: 2, at: '2026-11-15T10:00:00Z', price: 2.5, user: { name: 'bob', tags: ['y'] }, note: null },
        { id: 3, at: '2026-11-15T11:00:00Z', price: 3, user: { name: 'cy', tags: ['z'] }, note: 'n' },
      ];
      await publishMany(publisher, topic, messages);
      const answer = await call(service.url, 'recalculateTopicSchema', parts(topic));
      assert.equal(answer.status, 200, answer.text);
      assert.equal(answer.body.format, 'JSON');
      assert.deepEqual(JSON.parse(answer.body.schema), {
        $schema: 'https://json-schema.org/draft/2020-12/schema',
        type: 'object',
        properties: {
          id: { type: 'integer' },
          at: { type: 'string', format: 'date-time' },
          price: { type: 'number' },
          user: {
            type: 'object',
            properties: { name: { type: 'string' }, tags: { type: 'array', items: { type: 'string' } } },
            required: ['name', 'tags'],
          },
          note: { type: ['string', 'null'] },
        },
        required: ['id', 'at', 'price', 'user'],
      });
      assert.deepEqual((await schemaOf(topic)).body, answer.body);
    });
  });
});
