import assert from 'node:assert/strict';
import { request as httpRequest } from 'node:http';
import { test } from 'node:test';
import { readObject, type StoreUnderTest } from './objects.suite.ts';

const minute = 60_000;

/** A request as an attacker would write it: nothing is normalized, and headers are as given. */
export async function rawRequest(
  url: string,
  options: {
    method: string;
    path?: string;
    headers?: Record<string, string>;
    body?: string;
    /** Cuts the connection once the body is on its way. */
    cut?: boolean;
  },
): Promise<number | 'cut'> {
  const { hostname, port, pathname, search } = new URL(url);
  const path = options.path ?? pathname + search;
  return new Promise((resolve, reject) => {
    const outgoing = httpRequest({
      hostname,
      port,
      path,
      method: options.method,
      headers: options.headers ?? {},
      timeout: 10_000,
    });
    outgoing.on('timeout', () => outgoing.destroy(new Error('no answer')));
    outgoing.on('response', (response) => {
      response.resume();
      response.on('end', () => resolve(response.statusCode ?? 0));
      response.on('error', reject);
    });
    outgoing.on('error', (error) => (options.cut ? resolve('cut') : reject(error)));
    if (options.cut) outgoing.write(options.body ?? '', () => outgoing.destroy());
    else outgoing.end(options.body);
  });
}

async function send(
  url: string,
  init: RequestInit = {},
): Promise<{ status: number; headers: Headers; text: string }> {
  const response = await fetch(url, { ...init, signal: AbortSignal.timeout(10_000) });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

function changeParameter(url: string, name: string, change: (value: string) => string): string {
  const changed = new URL(url);
  const value = changed.searchParams.get(name);
  assert.ok(value !== null, `${name} is in the URL`);
  changed.searchParams.set(name, change(value));
  return changed.href;
}

const flipFirst = (value: string) => (value.startsWith('1') ? '2' : '1') + value.slice(1);

/** What signed URLs do in every store, tried with real HTTP. */
export function signedUrlSuite(under: () => StoreUnderTest): void {
  test('lets anyone read one object by a signed URL, whole or in part', async () => {
    const { store } = under();
    await store.put('signed/year=2026/report.csv', Buffer.from('0123456789'));
    const url = await store.signedGet('signed/year=2026/report.csv', { expiresAt: Date.now() + minute });
    const whole = await send(url);
    assert.equal(whole.status, 200);
    assert.equal(whole.text, '0123456789');
    assert.equal(whole.headers.get('content-disposition'), 'attachment; filename="report.csv"');
    assert.equal(whole.headers.get('content-type'), 'application/octet-stream');
    assert.equal(whole.headers.get('cache-control'), 'no-store');
    assert.equal(whole.headers.get('accept-ranges'), 'bytes');
    const part = await send(url, { headers: { range: 'bytes=2-4' } });
    assert.equal(part.status, 206);
    assert.equal(part.text, '234');
    assert.equal(part.headers.get('content-range'), 'bytes 2-4/10');
    assert.equal((await send(url, { headers: { range: 'bytes=-3' } })).text, '789');
    assert.equal((await send(url, { headers: { range: 'bytes=10-' } })).status, 416);
  });

  test('answers 404 for a signed URL of an object that does not exist', async () => {
    const url = await under().store.signedGet('signed/missing', { expiresAt: Date.now() + minute });
    assert.equal((await send(url)).status, 404);
  });

  test('refuses a signed GET whose method, key, expiry or signature was changed', async () => {
    const { store, expiryParameter, signatureParameter } = under();
    await store.put('signed/mine', Buffer.from('mine'));
    await store.put('signed/other', Buffer.from('other'));
    const url = await store.signedGet('signed/mine', { expiresAt: Date.now() + minute });
    for (const method of ['PUT', 'DELETE']) {
      const body = method === 'DELETE' ? {} : { body: 'evil' };
      assert.equal((await send(url, { method, ...body })).status, 403, method);
    }
    // Writing the URL anew does not break it, so each refusal below is due to its one change.
    assert.equal((await send(changeParameter(url, expiryParameter, (value) => value))).status, 200);
    const forged = [
      url.replace('signed/mine', 'signed/other'),
      url.replace('signed/mine', 'signed%2Fother'),
      changeParameter(url, expiryParameter, (value) => String(Number(value) + 1)),
      changeParameter(url, signatureParameter, flipFirst),
    ];
    for (const each of forged) assert.equal((await send(each)).status, 403, each);
    for (const change of [
      () => '',
      (value: string) => value.slice(1),
      (value: string) => `${value}a`,
      () => 'x'.repeat(9000),
    ]) {
      const { status } = await send(changeParameter(url, signatureParameter, change));
      assert.ok(status >= 400 && status < 500, String(status));
    }
    assert.equal(await readObject(store, 'signed/mine'), 'mine');
    assert.equal(await readObject(store, 'signed/other'), 'other');
  });

  test('refuses a signed URL that has expired', async () => {
    const { store } = under();
    await store.put('signed/expired', Buffer.from('x'));
    const expiresAt = Date.now() - 2_000;
    assert.equal((await send(await store.signedGet('signed/expired', { expiresAt }))).status, 403);
    const { url, headers } = await store.signedPut('signed/late', { expiresAt, contentLength: 1 });
    assert.equal((await send(url, { method: 'PUT', headers, body: 'x' })).status, 403);
    assert.equal(await store.head('signed/late'), undefined);
  });

  test('lets anyone upload once, of any media type, by a signed URL', async () => {
    const { store } = under();
    for (const [key, body] of [
      ['upload/code.zip', 'PK12345'],
      ['upload/empty', ''],
    ] as const) {
      const signed = await store.signedPut(key, {
        expiresAt: Date.now() + minute,
        contentLength: body.length,
      });
      const put = (content: string, type: string) =>
        send(signed.url, {
          method: 'PUT',
          headers: { ...signed.headers, 'content-type': type },
          body: content,
        });
      assert.equal((await put(body, 'application/json')).status, 200);
      assert.equal(await readObject(store, key), body);
      const again = await put(body.replace('PK', 'KO'), 'application/zip');
      assert.ok(again.status === 409 || again.status === 412, String(again.status));
      assert.equal(await readObject(store, key), body);
    }
  });

  test('lets one of two uploads with the same URL win', async () => {
    const { store } = under();
    const signed = await store.signedPut('upload/raced', {
      expiresAt: Date.now() + minute,
      contentLength: 6,
    });
    const bodies = ['body-0', 'body-1', 'body-2', 'body-3'];
    const statuses = await Promise.all(
      bodies.map(
        async (body) => (await send(signed.url, { method: 'PUT', headers: signed.headers, body })).status,
      ),
    );
    const winners = bodies.filter((_, index) => statuses[index] === 200);
    assert.equal(winners.length, 1, statuses.join());
    assert.equal(await readObject(store, 'upload/raced'), winners[0]);
  });

  test('refuses an upload of any other length, and keeps nothing of it', async () => {
    const { store } = under();
    const { url, headers } = await store.signedPut('upload/length', {
      expiresAt: Date.now() + minute,
      contentLength: 5,
    });
    const isRefused = (status: number | 'cut') => status === 400 || status === 403 || status === 411;
    for (const body of ['', '1234', '123456']) {
      const { status } = await send(url, { method: 'PUT', headers, body });
      assert.ok(isRefused(status), `${body.length}: ${status}`);
    }
    const chunked = { ...headers, 'transfer-encoding': 'chunked' };
    assert.ok(isRefused(await rawRequest(url, { method: 'PUT', headers: chunked, body: '12345' })));
    await rawRequest(url, {
      method: 'PUT',
      headers: { ...headers, 'content-length': '5' },
      body: '123',
      cut: true,
    });
    assert.equal(await store.head('upload/length'), undefined);
    assert.equal((await send(url, { method: 'PUT', headers, body: '12345' })).status, 200);
  });

  test('refuses a signed PUT whose method, key, expiry, length or signature was changed', async () => {
    const { store, expiryParameter, signatureParameter } = under();
    const { url, headers } = await store.signedPut('upload/mine', {
      expiresAt: Date.now() + minute,
      contentLength: 5,
    });
    for (const method of ['GET', 'DELETE']) {
      assert.equal((await send(url, { method, headers })).status, 403, method);
    }
    const forged = [
      url.replace('upload/mine', 'upload/other'),
      changeParameter(url, expiryParameter, (value) => String(Number(value) + 1)),
      changeParameter(url, signatureParameter, flipFirst),
    ];
    for (const each of forged) {
      assert.equal((await send(each, { method: 'PUT', headers, body: '12345' })).status, 403, each);
    }
    for (const [name] of new URL(url).searchParams) {
      const { status } = await send(changeParameter(url, name, flipFirst), {
        method: 'PUT',
        headers,
        body: '12345',
      });
      assert.ok(status >= 400 && status < 500, `${name}: ${status}`);
    }
    assert.equal(await store.head('upload/mine'), undefined);
    assert.equal(await store.head('upload/other'), undefined);
    const same = changeParameter(url, expiryParameter, (value) => value);
    assert.equal((await send(same, { method: 'PUT', headers, body: '12345' })).status, 200);
  });
}
