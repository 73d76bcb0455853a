import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { launch, startService } from './harness/service.ts';

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
