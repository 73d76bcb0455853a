import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { adjustableClock } from '../../platform/clock.ts';
import { readObject } from '../objects.suite.ts';
import { rawRequest } from '../signed.suite.ts';
import { type FileStore, openFileStore } from './files.ts';
import { listen } from './listening.fixture.ts';
import { urlSigner } from './signature.ts';

describe('the routes of signed URLs', { timeout: 60_000 }, () => {
  const clock = adjustableClock(1_000_000);
  let directory: string;
  let store: FileStore;
  let app: FastifyInstance;
  let baseUrl = '';

  before(async () => {
    directory = await mkdtemp(path.join(tmpdir(), 'millrace-routes-'));
    const signer = urlSigner(randomBytes(32), () => baseUrl);
    store = await openFileStore({ directory, signer });
    ({ app, url: baseUrl } = await listen({ store, signer, clock }, (instance) => {
      instance.post('/echo', async (request) => ({ body: request.body }));
    }));
  });
  after(async () => {
    await app?.close();
    await rm(directory, { recursive: true, force: true });
  });

  const signedGet = (key: string) => store.signedGet(key, { expiresAt: clock.now() + 1_000 });
  const signedPut = async (key: string, contentLength: number) =>
    (await store.signedPut(key, { expiresAt: clock.now() + 1_000, contentLength })).url;

  test('answer HEAD of a signed GET with the headers of the download and no body', async () => {
    await store.put('head.bin', Buffer.from('0123456789'));
    const url = await signedGet('head.bin');
    const full = await fetch(url, { method: 'HEAD' });
    assert.equal(full.status, 200);
    assert.equal(full.headers.get('content-length'), '10');
    assert.equal(full.headers.get('x-content-type-options'), 'nosniff');
    assert.ok(full.headers.get('etag'));
    assert.ok(Date.parse(full.headers.get('last-modified') ?? '') > 0);
    const part = await fetch(url, { method: 'HEAD', headers: { range: 'bytes=1-3' } });
    assert.equal(part.status, 206);
    assert.equal(part.headers.get('content-length'), '3');
    assert.equal(part.headers.get('content-range'), 'bytes 1-3/10');
    assert.equal((await fetch(await signedGet('missing'), { method: 'HEAD' })).status, 404);
  });

  test('give the whole for several ranges, nonsense and an outdated If-Range, and 416 past the end', async () => {
    await store.put('ranges.bin', Buffer.from('0123456789'));
    const url = await signedGet('ranges.bin');
    for (const range of [
      'bytes=0-1,3-4',
      'bytes=5-2',
      'bytes=--5',
      'items=1-2',
      `bytes=${'0-0,'.repeat(1000)}1-1`,
    ]) {
      const response = await fetch(url, { headers: { range } });
      assert.equal(response.status, 200, range.slice(0, 20));
      assert.equal(await response.text(), '0123456789');
    }
    const { etag } = (await store.head('ranges.bin')) ?? {};
    const fresh = await fetch(url, { headers: { range: 'bytes=0-1', 'if-range': etag ?? '' } });
    assert.equal(fresh.status, 206);
    assert.equal(await fresh.text(), '01');
    const outdated = await fetch(url, { headers: { range: 'bytes=0-1', 'if-range': '"other"' } });
    assert.equal(await outdated.text(), '0123456789');
    const past = await fetch(url, { headers: { range: 'bytes=99999999999999999999-' } });
    assert.equal(past.status, 416);
    assert.equal(past.headers.get('content-range'), 'bytes */10');
    await past.arrayBuffer();
  });

  test('stop letting a URL in at the moment it expires', async () => {
    await store.put('expiring', Buffer.from('x'));
    const url = await signedGet('expiring');
    clock.advance(999);
    assert.equal((await fetch(url)).status, 200);
    clock.advance(1);
    assert.equal((await fetch(url)).status, 403);
  });

  test('refuse every method that no URL is signed for', async () => {
    for (const url of [await signedGet('expiring'), await signedPut('never', 5)]) {
      for (const method of ['POST', 'PATCH', 'DELETE']) {
        const response = await fetch(url, method === 'DELETE' ? { method } : { method, body: '12345' });
        assert.equal(response.status, 403, method);
        await response.arrayBuffer();
      }
    }
  });

  test('never lead out of the store, however the path is written', async () => {
    await store.put('dir/inside', Buffer.from('x'));
    const url = await signedGet('dir/inside');
    const { search } = new URL(url);
    const paths = [
      '/v1/objects/',
      '/v1/objects/..',
      '/v1/objects/../../etc/passwd',
      '/v1/objects/dir/../dir/inside',
      '/v1/objects/dir/./inside',
      '/v1/objects/dir//inside',
      '/v1/objects//dir/inside',
      '/v1/objects/%2e%2e/%2e%2e/etc/passwd',
      '/v1/objects/dir%2finside',
      '/v1/objects/dir%5cinside',
      '/v1/objects/%252e%252e/inside',
      '/v1/objects/dir/inside%00',
      '/v1/objects/dir/inside%00.png',
      '/v1/objects/dir/inside%0a',
      '/v1/objects/%c0%ae%c0%ae/inside',
      '/v1/objects/dir/inside%',
      '/v1/objects/dir/inside;x',
      '/v1/objects/DIR/inside',
      `/v1/objects/${'x/'.repeat(5000)}y`,
    ];
    for (const each of paths) {
      const status = await rawRequest(baseUrl, { method: 'GET', path: each + search });
      assert.ok(status === 403 || status === 400, `${each.slice(0, 60)}: ${status}`);
    }
    assert.equal(await rawRequest(url, { method: 'GET' }), 200);
  });

  test('serve keys of the greatest length', async () => {
    const key = `${'x'.repeat(250)}/`.repeat(4) + 'y'.repeat(20);
    assert.equal((await fetch(await signedPut(key, 4), { method: 'PUT', body: 'long' })).status, 200);
    assert.equal(await (await fetch(await signedGet(key))).text(), 'long');
  });

  test('stream an upload that is larger than the body limit of the app, of any media type or none', async () => {
    const body = randomBytes(3_000_000);
    const types = [
      'application/json',
      'text/plain; charset=utf-8',
      'application/zip',
      'garbage',
      ';;',
      undefined,
    ];
    for (const [index, type] of types.entries()) {
      const key = `uploads/${index}`;
      const headers: Record<string, string> = type === undefined ? {} : { 'content-type': type };
      const response = await fetch(await signedPut(key, body.length), { method: 'PUT', body, headers });
      assert.equal(response.status, 200, String(type));
      assert.equal((await store.head(key))?.size, body.length);
    }
  });

  test('leave the rest of the app as it was', async () => {
    const json = { 'content-type': 'application/json' };
    const small = await fetch(`${baseUrl}/echo`, { method: 'POST', headers: json, body: '{"a":1}' });
    assert.deepEqual(await small.json(), { body: { a: 1 } });
    const large = await fetch(`${baseUrl}/echo`, {
      method: 'POST',
      headers: json,
      body: `"${'x'.repeat(2000)}"`,
    });
    assert.equal(large.status, 413);
    const other = await fetch(`${baseUrl}/echo`, {
      method: 'POST',
      headers: { 'content-type': 'application/zip' },
      body: 'x',
    });
    assert.equal(other.status, 415);
  });

  test('keep nothing of an upload whose client goes away', async () => {
    const url = await signedPut('uploads/cut', 1_000_000);
    const headers = { 'content-length': '1000000' };
    assert.equal(
      await rawRequest(url, { method: 'PUT', headers, body: 'x'.repeat(500_000), cut: true }),
      'cut',
    );
    const temporary = path.join(directory, 'temporary');
    const deadline = Date.now() + 5_000;
    while ((await readdir(temporary)).length > 0) {
      assert.ok(Date.now() < deadline, 'the temporary file is removed');
      await pause(10);
    }
    assert.equal(await store.head('uploads/cut'), undefined);
    assert.equal((await fetch(url, { method: 'PUT', body: 'x'.repeat(1_000_000) })).status, 200);
  });

  test('do not let a second upload change the first, even under way at the same time', async () => {
    const url = await signedPut('uploads/twice', 2_000_000);
    const bodies = ['a', 'b', 'c'].map((letter) => letter.repeat(2_000_000));
    const put = async (body: string) => {
      const response = await fetch(url, { method: 'PUT', body });
      await response.arrayBuffer();
      return response.status;
    };
    const statuses = await Promise.all(bodies.map(put));
    assert.deepEqual([...statuses].sort(), [200, 409, 409]);
    assert.equal(await readObject(store, 'uploads/twice'), bodies[statuses.indexOf(200)]);
    assert.equal(await put('d'.repeat(2_000_000)), 409);
  });
});
