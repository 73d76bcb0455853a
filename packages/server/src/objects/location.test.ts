import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { parseObjectsLocation } from './location.ts';

test('a file URL names a directory, absolute or relative', () => {
  assert.deepEqual(parseObjectsLocation('file:///var/lib/my%20objects'), {
    kind: 'files',
    directory: '/var/lib/my objects',
  });
  for (const text of ['file:data/objects', 'file:./data/objects']) {
    assert.deepEqual(parseObjectsLocation(text), { kind: 'files', directory: path.resolve('data/objects') });
  }
});

test('an s3 URL names a bucket, and a prefix where it has one', () => {
  assert.deepEqual(parseObjectsLocation('s3://my-bucket'), {
    kind: 's3',
    bucket: 'my-bucket',
    prefix: '',
    forcePathStyle: false,
  });
  assert.deepEqual(parseObjectsLocation('s3://my-bucket/a/b/?region=eu-central-1'), {
    kind: 's3',
    bucket: 'my-bucket',
    prefix: 'a/b/',
    region: 'eu-central-1',
    forcePathStyle: false,
  });
});

test('an s3 URL with an endpoint uses paths and a region by default, and credentials where it has them', () => {
  const endpoint = 'http://127.0.0.1:9000';
  assert.deepEqual(parseObjectsLocation(`s3://KEY:se%2Fcr%40et@bucket/p?endpoint=${endpoint}`), {
    kind: 's3',
    bucket: 'bucket',
    prefix: 'p/',
    endpoint,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: { accessKeyId: 'KEY', secretAccessKey: 'se/cr@et' },
  });
  const own = parseObjectsLocation(`s3://bucket?endpoint=${endpoint}&forcePathStyle=false&region=x-1`);
  assert.ok(own.kind === 's3');
  assert.equal(own.forcePathStyle, false);
  assert.equal(own.region, 'x-1');
});

test('a URL that cannot be used is refused with a sentence that repeats nothing of it', () => {
  const refused = [
    '',
    'HUSH',
    'https://HUSH:HUSH@bucket',
    'file:',
    'file:///',
    'file://HUSH/path',
    'file:HUSH?x=1',
    'file:///HUSH%2fb',
    'file:HUSH%00',
    'file:///HUSH%00',
    'file:HUSH%zz',
    's3:',
    's3://',
    's3://HUSH',
    's3://hu',
    's3://bucket:9000/HUSH',
    's3://KEY:HUSH/HUSH@bucket',
    's3://KEY:12/HUSH@bucket',
    's3://KEY:HUSH#x@bucket',
    's3://KEY:HUSH?x@bucket',
    's3://KEY@bucket/HUSH',
    's3://:HUSH@bucket',
    's3://KEY:HUSH%zz@bucket',
    's3://bucket/HUSH%20x',
    's3://bucket/%2e%2e%2fHUSH',
    's3://bucket/HUSH//x',
    's3://bucket?HUSH=1',
    's3://bucket?region=HUSH',
    's3://bucket?region=a&region=b',
    's3://bucket?endpoint=HUSH',
    's3://bucket?endpoint=ftp://HUSH',
    's3://bucket?endpoint=http://HUSH:HUSH@host',
    's3://bucket?endpoint=http://host/HUSH',
    's3://bucket?forcePathStyle=HUSH',
  ];
  for (const text of refused) {
    const location = parseObjectsLocation(text);
    assert.ok(location.kind === 'refused', text);
    assert.match(location.reason, /\.$/);
    assert.doesNotMatch(location.reason, /hush/i);
  }
});
