import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { call } from './harness/client.ts';
import { launch, startService } from './harness/service.ts';
import { Analyst } from './harness/sql.ts';

const endpoint = process.env.MILLRACE_TEST_S3_ENDPOINT;
const region = process.env.MILLRACE_TEST_S3_REGION ?? 'us-east-1';
const accessKeyId = process.env.MILLRACE_TEST_S3_ACCESS_KEY ?? '';
const secretAccessKey = process.env.MILLRACE_TEST_S3_SECRET_KEY ?? '';
const skip = endpoint === undefined && 'there is no S3 server: run npm run test:engines';

function objectsUrl(bucket: string, secret = secretAccessKey): string {
  const userinfo = `${encodeURIComponent(accessKeyId)}:${encodeURIComponent(secret)}`;
  return `s3://${userinfo}@${bucket}/lake?region=${region}&endpoint=${encodeURIComponent(endpoint ?? '')}`;
}

it('a service that keeps its files in S3 is ready when the bucket answers, and says so when it does not', {
  skip,
}, async () => {
  const bucket = `millrace-${randomBytes(6).toString('hex')}`;
  const client = new S3Client({
    endpoint: endpoint ?? '',
    region,
    credentials: { accessKeyId, secretAccessKey },
    forcePathStyle: true,
  });
  const service = await startService({ environment: { MILLRACE_OBJECTS_URL: objectsUrl(bucket) } });
  try {
    const missing = await fetch(`${service.url}/readyz`);
    assert.equal(missing.status, 503);
    assert.match(missing.headers.get('content-type') ?? '', /problem\+json/);
    await client.send(new CreateBucketCommand({ Bucket: bucket }));
    assert.equal((await fetch(`${service.url}/readyz`)).status, 200);
    assert.equal((await fetch(`${service.url}/livez`)).status, 200);
  } finally {
    client.destroy();
    await service.remove();
  }
});

it('files of a topic are kept in S3: written, queried, pruned by time, listed, downloaded and exported', {
  skip,
  timeout: 120_000,
}, async () => {
  const bucket = `millrace-${randomBytes(6).toString('hex')}`;
  const client = new S3Client({
    endpoint: endpoint ?? '',
    region,
    credentials: { accessKeyId, secretAccessKey },
    forcePathStyle: true,
  });
  await client.send(new CreateBucketCommand({ Bucket: bucket }));
  const service = await startService({ environment: { MILLRACE_OBJECTS_URL: objectsUrl(bucket) } });
  try {
    const analyst = await Analyst.hire(service);
    const messages = Array.from({ length: 500 }, (_value, index) => ({ n: index, page: `/p${index % 5}` }));
    await analyst.publish('clicks', messages);
    assert.deepEqual(await analyst.rows('SELECT count(*), sum(n) FROM clicks'), [['500', '124750']]);
    await analyst.publish('clicks', [{ n: 500, page: '/late' }]);
    const query = await analyst.run('SELECT page, count(*) AS views FROM clicks GROUP BY page ORDER BY page');
    assert.equal(query.state, 'SUCCEEDED', query.errorMessage ?? '');
    const exported = await analyst.export(query.queryExecutionId, 'csv');
    assert.equal(
      await exported.text(),
      'page,views\r\n/late,1\r\n/p0,100\r\n/p1,100\r\n/p2,100\r\n/p3,100\r\n/p4,100\r\n',
    );
    assert.deepEqual(
      await analyst.rows("SELECT count(*) FROM clicks WHERE _ingested_at < TIMESTAMP '2001-01-01'"),
      [['0']],
    );
    const path = { organizationName: analyst.organizationName, topicName: 'clicks' };
    const token = analyst.person.accessToken;
    const { files } = (await call(service.url, 'listTopicFiles', { token, path })).body;
    assert.ok(files.length >= 2, `${files.length} files`);
    const key = files[0]?.key ?? '';
    const link = await call(service.url, 'getTopicFileDownloadUrl', {
      token,
      path,
      query: { key },
    });
    const part = await fetch(link.body.url, { headers: { range: 'bytes=0-3' } });
    assert.equal(part.status, 206);
    assert.equal(await part.text(), 'PAR1');
    const inferred = await call(service.url, 'recalculateTopicSchema', { token, path });
    assert.equal(inferred.status, 200, inferred.text);
    assert.deepEqual(Object.keys(JSON.parse(inferred.body.schema).properties), ['n', 'page']);
  } finally {
    client.destroy();
    await service.remove();
  }
});

it('a malformed objects URL stops the start without repeating its secret', { skip }, async () => {
  const dataDirectory = await mkdtemp(join(tmpdir(), 'millrace-refused-'));
  const started = launch({
    MILLRACE_PORT: '0',
    MILLRACE_DATA_DIR: dataDirectory,
    MILLRACE_OBJECTS_URL: `${objectsUrl('bucket', 'very-secret-thing')}&colour=red`,
  });
  assert.equal(await started.exited, 78);
  await rm(dataDirectory, { recursive: true });
  const { stderr } = started.output();
  assert.match(stderr, /MILLRACE_OBJECTS_URL/);
  assert.doesNotMatch(stderr, /very-secret-thing/);
});
