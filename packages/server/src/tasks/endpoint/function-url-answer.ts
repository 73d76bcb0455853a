import { validateHeaderName, validateHeaderValue } from '../../platform/node-http.ts';
import { hopByHop } from './hop-by-hop.ts';

/** What is sent to the caller of an endpoint. */
export interface EndpointAnswer {
  readonly status: number;
  /** Names in lower case; `set-cookie` may be there several times. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Uint8Array;
}

export interface MalformedAnswer {
  /** What is wrong with it, to be read after "The answer of the task". */
  readonly malformed: string;
}

/**
 * Headers that would speak for the whole origin, which a task shares with the service and with other tasks,
 * and headers that are the service's own.
 */
const withheld = new Set([
  'alt-svc',
  'clear-site-data',
  'content-length',
  'date',
  'nel',
  'origin-agent-cluster',
  'public-key-pins',
  'report-to',
  'reporting-endpoints',
  'service-worker-allowed',
  'strict-transport-security',
  'x-request-id',
]);

const bodiless = [204, 205, 304];

/**
 * The answer that a handler meant by what it returned, payload version 2.0: with a `statusCode` it describes
 * an answer, and anything else is itself the body of one, as JSON.
 */
export function fromFunctionUrlAnswer(payload: Uint8Array): EndpointAnswer | MalformedAnswer {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString('utf8'));
  } catch {
    return { malformed: 'is not JSON' };
  }
  if (!isObject(value) || value.statusCode === undefined) {
    return { status: 200, headers: [['content-type', 'application/json']], body: payload };
  }
  const status = statusOf(value.statusCode);
  if (status === undefined) return { malformed: 'has a statusCode that is not a number from 200 to 599' };
  const headers = headersOf(value.headers, value.cookies);
  if ('malformed' in headers) return headers;
  const body = bodyOf(value.body, value.isBase64Encoded);
  if ('malformed' in body) return body;
  return { status, headers, body: bodiless.includes(status) ? Buffer.alloc(0) : body };
}

function statusOf(given: unknown): number | undefined {
  const status = typeof given === 'string' && /^\d{3}$/.test(given) ? Number(given) : given;
  if (typeof status !== 'number' || !Number.isInteger(status)) return undefined;
  return status >= 200 && status <= 599 ? status : undefined;
}

type Headers = [name: string, value: string][];

function headersOf(given: unknown, cookies: unknown): Headers | MalformedAnswer {
  if (given !== undefined && given !== null && !isObject(given)) {
    return { malformed: 'has headers that are not an object' };
  }
  const headers: Headers = [];
  const entries = Object.entries(given ?? {}).map(([name, value]) => [name.toLowerCase(), value] as const);
  const connection = entries.find(([name]) => name === 'connection')?.[1];
  const dropped = hopByHop(typeof connection === 'string' ? connection : undefined);
  for (const [name, value] of entries) {
    const text = textOf(value);
    if (text === undefined || !isHeader(name, text)) {
      return { malformed: `has a header ${JSON.stringify(name.slice(0, 100))} that cannot be sent` };
    }
    if (!dropped.has(name) && !withheld.has(name)) headers.push([name, text]);
  }
  if (!headers.some(([name]) => name === 'content-type')) headers.push(['content-type', 'application/json']);
  if (cookies === undefined || cookies === null) return headers;
  if (!Array.isArray(cookies)) return { malformed: 'has cookies that are not a list' };
  for (const cookie of cookies) {
    if (typeof cookie !== 'string' || !isHeader('set-cookie', cookie)) {
      return { malformed: 'has a cookie that cannot be sent' };
    }
    headers.push(['set-cookie', cookie]);
  }
  return headers;
}

function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (!Array.isArray(value)) return undefined;
  const texts = value.map(textOf);
  return texts.every((text) => text !== undefined) ? texts.join(',') : undefined;
}

function isHeader(name: string, value: string): boolean {
  try {
    validateHeaderName(name);
    validateHeaderValue(name, value);
    return true;
  } catch {
    return false;
  }
}

const base64 = /^[A-Za-z0-9+/_-]*={0,2}\s*$/;

function bodyOf(given: unknown, isBase64Encoded: unknown): Uint8Array | MalformedAnswer {
  if (isBase64Encoded !== undefined && isBase64Encoded !== null && typeof isBase64Encoded !== 'boolean') {
    return { malformed: 'has an isBase64Encoded that is neither true nor false' };
  }
  if (given === undefined || given === null) return Buffer.alloc(0);
  if (isBase64Encoded !== true) {
    return Buffer.from(typeof given === 'string' ? given : JSON.stringify(given));
  }
  if (typeof given !== 'string' || !base64.test(given)) return { malformed: 'has a body that is not base64' };
  return Buffer.from(given, 'base64');
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
