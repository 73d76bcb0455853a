import assert from 'node:assert/strict';
import { test } from 'node:test';
import { requireKey } from '../key.ts';
import { type SignedRequest, signedPath, urlSigner, verifySignature } from './signature.ts';

const secret = Buffer.alloc(32, 7);
const key = requireKey('acme/year=2026/code.zip');
const put: SignedRequest = { method: 'PUT', key, expiresAt: 2_000, contentLength: 5 };
const get: SignedRequest = { method: 'GET', key, expiresAt: 2_000 };
const signer = urlSigner(secret, () => 'http://localhost:8080/');

function pathOf(request: SignedRequest): string {
  return signer.sign(request).slice('http://localhost:8080'.length);
}

test('a signed request is recognized until the moment it expires', () => {
  assert.deepEqual(signer.verify('PUT', pathOf(put), 1_999), { verdict: 'valid', request: put });
  assert.deepEqual(signer.verify('GET', pathOf(get), 0), { verdict: 'valid', request: get });
  assert.deepEqual(signer.verify('HEAD', pathOf(get), 0), { verdict: 'valid', request: get });
  assert.deepEqual(signer.verify('PUT', pathOf(put), 2_000), { verdict: 'expired' });
});

test('the base URL is asked for when a URL is signed, with or without a slash at its end', () => {
  let base = 'http://one';
  const late = urlSigner(secret, () => base);
  base = 'https://two/';
  assert.ok(
    late.sign(get).startsWith('https://two/v1/objects/acme/year%3D2026/code.zip?method=GET&expires=2000&'),
  );
});

test('a proxy that writes the same key in another way does no harm', () => {
  const plain = pathOf(get).replace('%3D', '=');
  assert.deepEqual(signer.verify('GET', plain, 0), { verdict: 'valid', request: get });
});

test('no other method, key, expiry, length, secret or spelling is accepted', () => {
  const path = pathOf(put);
  const signature = new URL(path, 'http://x').searchParams.get('signature') ?? '';
  const lastCharacter = signature.at(-1) ?? '';
  // The last of 43 characters carries two bits that are thrown away in decoding.
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  const sameBytes = signature.slice(0, -1) + alphabet[alphabet.indexOf(lastCharacter) + 1];
  assert.deepEqual(Buffer.from(sameBytes, 'base64url'), Buffer.from(signature, 'base64url'));
  const forged = [
    '',
    '/',
    signedPath,
    path.replace('code.zip', 'code.zap'),
    path.replace('acme/', ''),
    path.replace('acme/', 'acme%2F'),
    path.replace('acme/', 'acme//'),
    path.replace('acme/', 'acme/./'),
    path.replace('acme/', 'acme/x/../'),
    path.replace('acme/', 'acme/x/%2e%2e/'),
    path.replace('acme/', 'acme/%252e%252e/'),
    path.replace('code.zip', 'code.zip%00'),
    path.replace('code.zip', 'code.zip%zz'),
    path.replace('code.zip', '%c0%ae%c0%ae'),
    path.replace('expires=2000', 'expires=2001'),
    path.replace('expires=2000', 'expires=02000'),
    path.replace('expires=2000', 'expires=2e3'),
    path.replace('expires=2000', 'expires=99999999999999999999'),
    path.replace('expires=2000', 'expires=-1'),
    path.replace('expires=2000&', ''),
    path.replace('length=5', 'length=6'),
    path.replace('length=5', 'length=05'),
    path.replace('length=5', 'length=5.0'),
    path.replace('length=5&', ''),
    path.replace('method=PUT', 'method=GET'),
    path.replace('method=PUT', 'method=put'),
    path.replace('method=PUT&', ''),
    path.replace('method=PUT', 'method=GET').replace('length=5&', ''),
    path.replace(signature, sameBytes),
    path.replace(signature, ''),
    path.replace(signature, signature.slice(1)),
    path.replace(signature, `${signature}A`),
    path.replace(signature, 'A'.repeat(43)),
    path.replace(signature, 'A'.repeat(100_000)),
    path.replace(signature, `${signature.slice(0, -1)}%00`),
    `${path}&length=5`,
    `${path}&length=6`,
    `${path}&extra=1`,
    `${path}&__proto__=1`,
    `${path}?x`,
    path.replace(/\?.*/, ''),
  ];
  for (const each of forged) assert.deepEqual(signer.verify('PUT', each, 0), { verdict: 'invalid' }, each);
  for (const method of ['GET', 'HEAD', 'POST', 'DELETE', 'put', '']) {
    assert.deepEqual(signer.verify(method, path, 0), { verdict: 'invalid' }, method);
  }
  assert.deepEqual(signer.verify('PUT', pathOf(get), 0), { verdict: 'invalid' });
  assert.deepEqual(verifySignature(Buffer.alloc(32, 8), 'PUT', path, 0), { verdict: 'invalid' });
});

test('a forged URL is invalid whether or not it claims to have expired', () => {
  const forged = pathOf(put).replace('length=5', 'length=6');
  assert.deepEqual(signer.verify('PUT', forged, 3_000), { verdict: 'invalid' });
});

test('a short secret and numbers that are not whole are refused', () => {
  assert.throws(() => urlSigner(Buffer.alloc(31), () => 'http://x'), RangeError);
  for (const wrong of [1.5, -1, Number.NaN, Number.POSITIVE_INFINITY, 1e21]) {
    assert.throws(() => signer.sign({ ...get, expiresAt: wrong }), RangeError);
    assert.throws(() => signer.sign({ ...put, contentLength: wrong }), RangeError);
  }
});
