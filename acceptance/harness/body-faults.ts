import { gzipSync } from 'node:zlib';
import { contract } from './client.ts';
import { bodySchema, type FaultyRequest, type ValidRequest, wireOf } from './request-faults.ts';

const deep = 100_000;

/** Bodies that are no JSON document in UTF-8. */
const malformed: readonly (readonly [what: string, body: string | Uint8Array])[] = [
  ['cut off', '{"a":'],
  ['an open string', '{"a":"b'],
  ['with a comma too many', '{"a":1,}'],
  ['in single quotes', "{'a':1}"],
  ['with a comment', '{"a":1}//'],
  ['two documents', '{}{}'],
  ['a bare word', 'hello'],
  ['not a number', 'NaN'],
  ['undefined', 'undefined'],
  ['blank', ' \r\n\t'],
  ['NUL', '\u0000'],
  ['with a NUL after it', '{}\u0000'],
  ['with a raw line break in a string', '{"a":"\n"}'],
  ['with a bad escape', '{"a":"\\x41"}'],
  ['with a byte that is no UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
  ['with an overlong slash', Buffer.from([0x22, 0xc0, 0xaf, 0x22])],
  ['with half a surrogate pair as bytes', Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])],
  ['in UTF-16', Buffer.from('\ufeff{}', 'utf16le')],
  ['deep and never closed', '['.repeat(deep)],
  ['deep objects that are never closed', '{"a":'.repeat(20_000)],
];

/** Documents that are JSON and no object. A byte order mark before one is allowed, and is no fault. */
const noObjects: readonly (readonly [what: string, body: string])[] = [
  ['an array', '[]'],
  ['a string', '"text"'],
  ['a number', '1'],
  ['null', 'null'],
  ['true', 'true'],
  ['an array after a byte order mark', '\ufeff[]'],
  ['deep arrays', '['.repeat(deep) + ']'.repeat(deep)],
];

/** Bodies of an operation that takes a JSON document which are none, or none of the kind. */
export function documentFaults(valid: ValidRequest): FaultyRequest[] {
  const schema = bodySchema(valid.operation);
  if (schema === undefined) return [];
  const fault = (what: string, body: string | Uint8Array | undefined, code: FaultyRequest['codes'][0]) => ({
    what: `body is ${what}`,
    wire: { ...wireOf(valid), body },
    codes: [code],
    pointer: '',
  });
  const { body } = valid.operation;
  const empty = body !== undefined && 'schema' in body && body.optional === true ? [] : [undefined, ''];
  const garbage = Buffer.from([0x1f, 0x8b, 0x08, 0x00, 0xde, 0xad, 0xbe, 0xef]);
  const zipped: readonly (readonly [string, Uint8Array])[] = [
    ['garbage that is called gzip', garbage],
    ['zipped', gzipSync('[]')],
  ];
  return [
    ...malformed.map(([what, body]) => fault(what, body, 'MALFORMED_JSON')),
    ...noObjects.map(([what, body]) => fault(what, body, 'VALIDATION_FAILED')),
    ...empty.map((body) => fault('empty', body, 'VALIDATION_FAILED')),
    ...zipped.map(([what, body]): FaultyRequest => {
      const headers = { ...valid.headers, 'content-encoding': 'gzip' };
      const wire = wireOf(valid, { headers, body });
      return { what: `body is ${what}`, wire, codes: ['MALFORMED_JSON', 'MEDIA_TYPE_NOT_SUPPORTED'] };
    }),
  ];
}

const otherMediaTypes = [
  'text/plain',
  'application/xml',
  'multipart/form-data; boundary=x',
  'application/x-www-form-urlencoded',
  'application/octet-stream',
  'application/jsonp',
  'application/problem+json',
  'application/json; charset=utf-16',
  'application/json; charset="latin1"',
  'application/json, text/plain',
  'json',
  '*/*',
  ';',
  '',
];

/** Bodies of a media type that the operation does not take, and of none. */
export function mediaTypeFaults(valid: ValidRequest): FaultyRequest[] {
  const { body } = valid.operation;
  if (body === undefined || ('raw' in body && body.mediaTypes.includes('any'))) return [];
  const { 'content-type': _type, ...others } = valid.headers;
  const fault = (what: string, headers: Record<string, string>): FaultyRequest => ({
    what: `media type is ${what}`,
    wire: wireOf(valid, { headers }),
    codes: ['MEDIA_TYPE_NOT_SUPPORTED'],
    detail: 'application/json',
  });
  return [
    fault('missing', others),
    ...otherMediaTypes.map((type) => fault(`"${type}"`, { ...others, 'content-type': type })),
  ];
}

/**
 * Bodies that are one byte too long, both when they say so and when they do not. One that says so is
 * refused before it is sent: a client that sends all the same may find the connection closed first.
 */
export function sizeFaults(valid: ValidRequest): FaultyRequest[] {
  // A body of a GET has no meaning and is not read.
  if (valid.operation.method === 'GET') return [];
  const limit = valid.operation.limits?.bodyBytes ?? contract.limits.requestBytes;
  const body = Buffer.alloc(limit + 1, 0x20);
  return [{ chunked: true }, { withheld: true }].map((way) => ({
    what: `body of ${limit + 1} bytes, ${Object.keys(way)}`,
    wire: { ...wireOf(valid, { body }), ...way },
    codes: ['BODY_TOO_LARGE'],
    detail: String(limit),
  }));
}

/** Bodies where none is expected. Clients that mean an empty one send `{}` or `null`, which is no fault. */
export function unexpectedBodies(valid: ValidRequest): FaultyRequest[] {
  const { operation } = valid;
  if (operation.body !== undefined || operation.method === 'GET') return [];
  const headers = { ...valid.headers, 'content-type': 'application/json' };
  return ['{"a":1}', '[]', '""', '0', 'hello', '{', '\u0000'].map((body) => ({
    what: `unexpected body ${JSON.stringify(body)}`,
    wire: wireOf(valid, { headers, body }),
    codes: ['BODY_NOT_EXPECTED'],
  }));
}
