import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import { CreateBucketCommand, ListMultipartUploadsCommand, S3Client } from '@aws-sdk/client-s3';
import { systemClock } from '../../platform/clock.ts';
import { listen } from '../files/listening.fixture.ts';
import { urlSigner } from '../files/signature.ts';
import type { S3Location } from '../location.ts';
import { objectStoreSuite, readObject } from '../objects.suite.ts';
import { relayUploads } from '../relay.ts';
import { openS3Store } from './s3.ts';

const { MILLRACE_TEST_S3_ENDPOINT: endpoint, MILLRACE_TEST_S3_REGION: region = 'us-east-1' } = process.env;
const credentials = {
  accessKeyId: process.env.MILLRACE_TEST_S3_ACCESS_KEY ?? '',
  secretAccessKey: process.env.MILLRACE_TEST_S3_SECRET_KEY ?? '',
};

async function newBucket(prefix: string): Promise<{ location: S3Location; client: S3Client }> {
  if (endpoint === undefined) throw new Error('MILLRACE_TEST_S3_ENDPOINT is not set.');
  const client = new S3Client({ endpoint, region, credentials, forcePathStyle: true });
  const bucket = `millrace-${randomBytes(6).toString('hex')}`;
  await client.send(new CreateBucketCommand({ Bucket: bucket }));
  return { client, location: { bucket, prefix, endpoint, region, credentials, forcePathStyle: true } };
}

if (endpoint === undefined) {
  test('an object store in S3', { skip: 'MILLRACE_TEST_S3_ENDPOINT is not set' });
} else {
  for (const prefix of ['', 'some/prefix/']) {
    objectStoreSuite(`an object store in S3, ${prefix === '' ? 'no prefix' : 'below a prefix'}`, async () => {
      const { location, client } = await newBucket(prefix);
      const store = openS3Store({ location, clock: systemClock });
      return {
        store,
        expiryParameter: 'X-Amz-Expires',
        signatureParameter: 'X-Amz-Signature',
        async stop() {
          // What failed above must not have left parts behind, which cost money and nobody sees.
          const unfinished = await client.send(new ListMultipartUploadsCommand({ Bucket: location.bucket }));
          client.destroy();
          await store.close();
          assert.deepEqual(unfinished.Uploads ?? [], []);
        },
      };
    });
  }

  describe('an object store in S3', { timeout: 60_000 }, () => {
    test('sees nothing outside its prefix', async () => {
      const { location, client } = await newBucket('');
      const whole = openS3Store({ location, clock: systemClock });
      const part = openS3Store({ location: { ...location, prefix: 'part/' }, clock: systemClock });
      await whole.put('other/object', Buffer.from('x'));
      await part.put('object', Buffer.from('x'));
      assert.deepEqual(
        (await part.list('', { limit: 10 })).objects.map((object) => object.key),
        ['object'],
      );
      assert.deepEqual(
        (await whole.list('', { limit: 10 })).objects.map((object) => object.key),
        ['other/object', 'part/object'],
      );
      assert.equal(part.uriOf('object'), `s3://${location.bucket}/part/object`);
      client.destroy();
      await Promise.all([whole.close(), part.close()]);
    });

    test('is not usable without its bucket or with a wrong secret', async () => {
      const { location, client } = await newBucket('');
      const wrong = [
        { ...location, bucket: 'millrace-no-such-bucket' },
        { ...location, credentials: { ...credentials, secretAccessKey: 'wrong-secret' } },
        { ...location, endpoint: 'http://127.0.0.1:1' },
      ];
      for (const each of wrong) {
        const store = openS3Store({ location: each, clock: systemClock });
        await assert.rejects(store.check());
        await store.close();
      }
      client.destroy();
    });

    test('takes an upload with nothing but a URL when uploads are relayed, and only one', async () => {
      const { location, client } = await newBucket('');
      let baseUrl = '';
      const signer = urlSigner(randomBytes(32), () => baseUrl);
      const store = relayUploads(openS3Store({ location, clock: systemClock }), signer);
      const { app, url } = await listen({ store, signer, clock: systemClock });
      baseUrl = url;
      const signed = await store.signedPut('code.zip', { expiresAt: Date.now() + 60_000, contentLength: 5 });
      assert.deepEqual(signed.headers, {});
      const put = async (body: string) => (await fetch(signed.url, { method: 'PUT', body })).status;
      assert.equal(await put('1234'), 400);
      assert.equal(await put('12345'), 200);
      assert.equal(await put('54321'), 409);
      assert.equal(await readObject(store, 'code.zip'), '12345');
      await app.close();
      client.destroy();
      await store.close();
    });
  });
}
