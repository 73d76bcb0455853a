import { gzipSync } from 'node:zlib';

/** A request that can be sent in more than one way. */
export interface Sent {
  readonly path: string;
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body?: string | Uint8Array;
  readonly chunked?: boolean;
}

export const json = { 'content-type': 'application/json' };
export const bearer = (credential: string) => ({ authorization: `Bearer ${credential}` });
export const event = '{"page":"/pricing","Größe":1}';

export interface MessageFormParts {
  /** Of a topic with files and a stream, of one with a stream only, of a name too long, and of nobody. */
  readonly path: string;
  readonly streamPath: string;
  readonly badPath: string;
  readonly strangePath: string;
  /** A key of the organization, and one that is for the first topic only. */
  readonly secret: string;
  readonly restricted: string;
  readonly token: string;
  readonly viewerToken: string;
}

/** Messages in every form that the service tells apart, with the status that each is answered with. */
export function messageForms(parts: MessageFormParts): [what: string, sent: Sent, status: number][] {
  const { path, streamPath, badPath, strangePath, secret, restricted, token, viewerToken } = parts;
  const by = { ...bearer(secret), ...json };
  const query = '?messageKey=user-42';
  return [
    ['a message', { path, query, headers: by, body: event }, 200],
    ['by a person', { path, query, headers: { ...bearer(token), ...json }, body: event }, 200],
    ['by a key for it', { path, query, headers: { ...bearer(restricted), ...json }, body: event }, 200],
    ['an encoded key', { path, query: '?messageKey=a%2Fb%20%C3%A9', headers: by, body: event }, 200],
    ['a key with a plus', { path, query: '?messageKey=a+b', headers: by, body: event }, 200],
    [
      'another scheme',
      { path, query, headers: { authorization: `apikey ${secret}`, ...json }, body: event },
      200,
    ],
    [
      'a charset',
      { path, query, headers: { ...by, 'content-type': 'application/json; charset=utf-8' }, body: event },
      200,
    ],
    [
      'bytes',
      { path, query, headers: { ...by, 'content-type': 'application/octet-stream' }, body: event },
      200,
    ],
    ['no type', { path, query, headers: bearer(secret), body: event }, 200],
    ['no JSON type', { path, query, headers: { ...by, 'content-type': 'text/plain' }, body: event }, 415],
    [
      'text for a stream',
      { path: streamPath, query, headers: { ...by, 'content-type': 'text/plain' }, body: 'x' },
      200,
    ],
    [
      'no type at all',
      { path: streamPath, query, headers: { ...by, 'content-type': 'nonsense' }, body: 'x' },
      415,
    ],
    ['a byte order mark', { path, query, headers: by, body: `\ufeff${event}` }, 200],
    ['zipped', { path, query, headers: { ...by, 'content-encoding': 'gzip' }, body: gzipSync(event) }, 200],
    ['zipped badly', { path, query, headers: { ...by, 'content-encoding': 'gzip' }, body: event }, 400],
    ['an unknown encoding', { path, query, headers: { ...by, 'content-encoding': 'br' }, body: event }, 415],
    ['in chunks', { path, query, headers: by, body: event, chunked: true }, 200],
    ['an empty body', { path, query, headers: by }, 400],
    ['no JSON', { path, query, headers: by, body: '{' }, 400],
    [
      'no UTF-8',
      { path, query, headers: by, body: Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]) },
      400,
    ],
    ['no object', { path, query, headers: by, body: '[1]' }, 400],
    ['a large message', { path, query, headers: by, body: `{"a":"${'x'.repeat(300_000)}"}` }, 200],
    ['one too large', { path, query, headers: by, body: `{"a":"${'x'.repeat(1_100_000)}"}` }, 413],
    ['no key', { path, headers: by, body: event }, 400],
    ['an empty key', { path, query: '?messageKey=', headers: by, body: event }, 400],
    ['a long key', { path, query: `?messageKey=${'k'.repeat(1025)}`, headers: by, body: event }, 400],
    ['a zero byte in the key', { path, query: '?messageKey=a%00', headers: by, body: event }, 400],
    ['two keys', { path, query: '?messageKey=a&messageKey=b', headers: by, body: event }, 400],
    ['a key badly encoded', { path, query: '?messageKey=%zz', headers: by, body: event }, 400],
    ['an unknown parameter', { path, query: `${query}&more=1`, headers: by, body: event }, 400],
    [
      'from a known page',
      { path, query, headers: { ...by, origin: 'https://app.example' }, body: event },
      200,
    ],
    [
      'from another page',
      { path, query, headers: { ...by, origin: 'https://evil.example' }, body: event },
      200,
    ],
    [
      'with an id of the request',
      { path, query, headers: { ...by, 'x-request-id': 'mine.1' }, body: event },
      200,
    ],
    ['with a bad one', { path, query, headers: { ...by, 'x-request-id': 'no spaces' }, body: event }, 200],
    ['to be kept alive', { path, query, headers: { ...by, connection: 'keep-alive' }, body: event }, 200],
    ['an expectation', { path, query, headers: { ...by, expect: '100-continue' }, body: event }, 200],
    ['nobody', { path, query, headers: json, body: event }, 401],
    ['a bad credential', { path, query, headers: { ...bearer('mr_no'), ...json }, body: event }, 401],
    [
      'two credentials',
      {
        path,
        query,
        headers: { ...json, authorization: [`Bearer ${secret}`, `Bearer ${secret}`] },
        body: event,
      },
      401,
    ],
    ['by a viewer', { path, query, headers: { ...bearer(viewerToken), ...json }, body: event }, 403],
    [
      'by a key for another',
      { path: streamPath, query, headers: { ...bearer(restricted), ...json }, body: event },
      403,
    ],
    ['to a bad topic', { path: badPath, query, headers: by, body: event }, 400],
    ['to nowhere', { path: strangePath, query, headers: by, body: event }, 404],
  ];
}
