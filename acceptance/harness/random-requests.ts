import type { Operation } from '@millrace/contract';
import { methodOf, type WireRequest } from './requests.ts';
import { type JsonSchema, plainSchema, sample } from './samples.ts';
import { encode, oddTexts, valueFaults } from './value-faults.ts';

/** Numbers from 0 to 1 that are the same for the same seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'SEARCH'];
const mediaTypes = [
  'application/json',
  'application/json; charset=utf-8',
  'application/x-ndjson',
  'application/octet-stream',
  'text/plain',
  'multipart/form-data; boundary=x',
  'a/b; c="',
  ';;;',
];
const rawBodies = ['', '{', '[]', 'null', '"', '\u0000', '{"__proto__":{"a":1}}', '1e400', '['.repeat(5000)];
const rawPieces = ['', '.', '..', '%2e%2e', '%2f', '%00', '%ff', '%', '%zz', '*', ':name', '{name}', ';a=b'];
const rawQueries = [
  '?',
  '&&&',
  '=',
  '=&=',
  '%',
  '%ff=%ff',
  'a[b][c]=1',
  '__proto__=1',
  'a=1&a=2',
  '?a=1?b',
  '#x',
];

/** Bodies over a limit are tried elsewhere, where it is known which limit. */
const mostBytes = 100_000;

/** What random requests are put together from. */
export interface Pieces {
  readonly operations: readonly Operation[];
  readonly organizationNames: readonly string[];
  readonly authorizations: readonly string[];
}

/** Makes requests that are right in some parts and wrong in others. */
export function randomRequests(pieces: Pieces, random: () => number): () => WireRequest {
  const chance = (share: number) => random() < share;
  const pick = <Item>(items: readonly [Item, ...Item[]] | readonly Item[], otherwise: Item): Item =>
    items[Math.floor(random() * items.length)] ?? otherwise;
  const words = [...new Set(pieces.operations.flatMap(({ path }) => path.split('/')))];
  const wellFormed = oddTexts.filter((text) => text.isWellFormed());
  const oddWord = () => (chance(0.5) ? encodeURIComponent(pick(wellFormed, '')) : pick(rawPieces, ''));

  function path(operation: Operation): string {
    const parameters = properties(operation.parameters?.path);
    const segments = operation.path.split('/').map((segment) => {
      const name = /^\{(\w+)\}$/.exec(segment)?.[1];
      if (name === undefined) return segment;
      if (chance(0.1)) return oddWord();
      if (name === 'organizationName') return pick(pieces.organizationNames, '');
      return encodeURIComponent(String(sample(parameters[name] ?? {})));
    });
    if (chance(0.05)) segments.splice(1 + Math.floor(random() * segments.length), 1);
    if (chance(0.05)) segments.splice(1 + Math.floor(random() * segments.length), 0, pick(words, ''));
    if (chance(0.05)) segments.push(oddWord());
    const joined = `/${segments.join('/')}`.replace(/^\/\//, '/');
    return chance(0.03) ? joined.toUpperCase() : joined;
  }

  function query(operation: Operation): string {
    const parts = Object.entries(properties(operation.parameters?.query)).flatMap(([name, property]) => {
      if (chance(0.2)) return [];
      const value = chance(0.15) ? pick(wellFormed, '') : String(sample(property));
      const part = `${name}=${encodeURIComponent(value)}`;
      return chance(0.05) ? [part, part] : [part];
    });
    if (chance(0.1)) parts.push(pick(rawQueries, ''));
    return parts.length === 0 ? '' : `?${parts.join('&')}`;
  }

  function body(operation: Operation): string | Uint8Array | undefined {
    if (chance(0.1)) return pick(rawBodies, '');
    if (chance(0.1)) return Uint8Array.from({ length: random() * 200 }, () => random() * 256);
    if (operation.body === undefined) return undefined;
    if (!('schema' in operation.body)) return '{"a":1}';
    const schema = plainSchema(operation.body.schema);
    if (chance(0.4)) return encode(sample(schema));
    const faulty = encode(pick(valueFaults(schema), { what: '', pointer: '', value: {} }).value);
    return faulty.length > mostBytes ? '{}' : faulty;
  }

  function headers(): Record<string, string> {
    return {
      ...(chance(0.9) ? { authorization: pick(pieces.authorizations, '') } : {}),
      ...(chance(0.9) ? { 'content-type': chance(0.7) ? 'application/json' : pick(mediaTypes, '') } : {}),
      ...(chance(0.5) ? { invocationtype: pick(['RequestResponse', 'Event', 'event', ''], '') } : {}),
      ...(chance(0.1)
        ? { 'x-request-id': pick(['fine-1', 'a b', 'x'.repeat(500), '<script>', ''], '') }
        : {}),
      ...(chance(0.1) ? { origin: pick(['https://example.com', 'null', '\u00e9'], '') } : {}),
      ...(chance(0.1) ? { accept: pick(['text/event-stream', 'image/png', '*/*;q=x'], '') } : {}),
      ...(chance(0.05) ? { 'content-encoding': pick(['gzip', 'br', 'identity', 'x'], '') } : {}),
      ...(chance(0.05) ? { 'access-control-request-method': pick(['PUT', 'x y'], '') } : {}),
      ...(chance(0.05) ? { 'x-http-method-override': 'DELETE', 'x-forwarded-for': '10.0.0.1, x' } : {}),
      ...(chance(0.05) ? { range: 'bytes=5-1', 'if-none-match': '*' } : {}),
    };
  }

  return () => {
    const operation = pieces.operations[Math.floor(random() * pieces.operations.length)];
    if (operation === undefined) throw new Error('there are operations to call');
    const sent = body(operation);
    return {
      method: chance(0.8) ? methodOf(operation) : pick(methods, 'GET'),
      target: path(operation) + query(operation),
      headers: headers(),
      ...(sent === undefined ? {} : { body: sent, chunked: chance(0.1) }),
    };
  };
}

function properties(schema: Parameters<typeof plainSchema>[0] | undefined): Record<string, JsonSchema> {
  return schema === undefined ? {} : { ...plainSchema(schema).properties };
}
