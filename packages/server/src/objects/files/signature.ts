import { createHmac, timingSafeEqual } from 'node:crypto';
import { type ObjectKey, parseKey } from '../key.ts';

/**
 * URLs that carry their own permission, for objects that this service serves itself.
 *
 * The signature is an HMAC-SHA256 over a version tag, the method, the key, the expiry and, for an upload,
 * its length, one to a line; none of them can hold a line break. The URL is
 * `/v1/objects/<key>?method=GET&expires=<epoch ms>&signature=<base64url>`, with `length=<n>` for a PUT.
 * There is exactly one way to write a valid one, so nothing in it can be changed and still be accepted.
 */
export type SignedRequest =
  | { method: 'GET'; key: ObjectKey; expiresAt: number }
  | { method: 'PUT'; key: ObjectKey; expiresAt: number; contentLength: number };

export type Verification =
  | { verdict: 'valid'; request: SignedRequest }
  | { verdict: 'invalid' }
  | { verdict: 'expired' };

/** Where signed URLs lead, below the public address of the service. */
export const signedPath = '/v1/objects/';

const version = 'millrace-object-url-1';
const minimumSecretBytes = 32;
const signaturePattern = /^[A-Za-z0-9_-]{43}$/;
const numberPattern = /^(0|[1-9][0-9]{0,15})$/;

/** Signs URLs with a secret of at least 32 bytes. The base URL is asked for each time: it is known late. */
export interface UrlSigner {
  sign(request: SignedRequest): string;
  /** Judges a request by its method and its raw URL (path and query as they arrived). */
  verify(method: string, rawUrl: string, now: number): Verification;
}

export function urlSigner(secret: Uint8Array, baseUrl: () => string): UrlSigner {
  if (secret.byteLength < minimumSecretBytes) {
    throw new RangeError(`The secret of signed URLs must have at least ${minimumSecretBytes} bytes.`);
  }
  return {
    sign: (request) => baseUrl().replace(/\/+$/, '') + signPath(secret, request),
    verify: (method, rawUrl, now) => verifySignature(secret, method, rawUrl, now),
  };
}

function signPath(secret: Uint8Array, request: SignedRequest): string {
  const query = new URLSearchParams({ method: request.method, expires: String(request.expiresAt) });
  if (request.method === 'PUT') query.set('length', String(request.contentLength));
  if (!numberPattern.test(String(request.expiresAt))) throw new RangeError('An expiry is a whole number.');
  if (!numberPattern.test(query.get('length') ?? '0')) throw new RangeError('A length is a whole number.');
  query.set('signature', digest(secret, request).toString('base64url'));
  const path = request.key.split('/').map(encodeURIComponent).join('/');
  return `${signedPath}${path}?${query}`;
}

/**
 * Judges a request by its method and its raw URL. A signed GET is good for HEAD too. An expired URL is told
 * apart only when its signature is right, so that a forger learns nothing.
 */
export function verifySignature(
  secret: Uint8Array,
  method: string,
  rawUrl: string,
  now: number,
): Verification {
  const claim = readClaim(rawUrl);
  if (claim === undefined) return { verdict: 'invalid' };
  const { request, signature } = claim;
  const wanted = method === 'HEAD' ? 'GET' : method;
  const genuine = timingSafeEqual(digest(secret, request), Buffer.from(signature, 'base64url'));
  if (!genuine || wanted !== request.method) return { verdict: 'invalid' };
  return now < request.expiresAt ? { verdict: 'valid', request } : { verdict: 'expired' };
}

function digest(secret: Uint8Array, request: SignedRequest): Buffer {
  const length = request.method === 'PUT' ? String(request.contentLength) : '-';
  const lines = [version, request.method, request.key, String(request.expiresAt), length];
  return createHmac('sha256', secret).update(lines.join('\n')).digest();
}

function readClaim(rawUrl: string): { request: SignedRequest; signature: string } | undefined {
  const [rawPath = '', rawQuery = '', ...rest] = rawUrl.split('?');
  if (rest.length > 0 || !rawPath.startsWith(signedPath)) return undefined;
  const key = readKey(rawPath.slice(signedPath.length));
  const query = readQuery(rawQuery);
  if (key === undefined || query === undefined) return undefined;
  const { method, expires, length, signature } = query;
  if (expires === undefined || !numberPattern.test(expires)) return undefined;
  if (!isCanonicalSignature(signature)) return undefined;
  const expiresAt = Number(expires);
  if (method === 'GET' && length === undefined) return { request: { method, key, expiresAt }, signature };
  if (method === 'PUT' && length !== undefined && numberPattern.test(length)) {
    return { request: { method, key, expiresAt, contentLength: Number(length) }, signature };
  }
  return undefined;
}

/** Segments are decoded once and one by one, so an encoded slash stays inside its segment and is refused. */
function readKey(rawKey: string): ObjectKey | undefined {
  try {
    const segments = rawKey.split('/').map(decodeURIComponent);
    if (segments.some((segment) => segment.includes('/'))) return undefined;
    const parse = parseKey(segments.join('/'));
    return parse.ok ? parse.key : undefined;
  } catch {
    return undefined;
  }
}

const parameterNames = new Set(['method', 'expires', 'length', 'signature']);

function readQuery(rawQuery: string): Record<string, string> | undefined {
  const query: Record<string, string> = {};
  for (const [name, value] of new URLSearchParams(rawQuery)) {
    if (!parameterNames.has(name) || name in query) return undefined;
    query[name] = value;
  }
  return query;
}

/** 43 characters carry two bits more than 32 bytes; those must be zero, or four spellings would be valid. */
function isCanonicalSignature(text: string | undefined): text is string {
  if (text === undefined || !signaturePattern.test(text)) return false;
  return Buffer.from(text, 'base64url').toString('base64url') === text;
}
