/** Bytes that are no good request, and what a server may make of them. */
export interface MalformedRequest {
  readonly what: string;
  readonly bytes: string;
  /** The statuses that are a fair answer. */
  readonly statuses: readonly number[];
  /** Whether ending the connection without a word is fair as well. */
  readonly silence?: true;
}

const host = 'Host: millrace.example\r\n';
const smuggled = `GET /v1/health HTTP/1.1\r\n${host}\r\n`;

/** A request whose sender the server must not trust to be understood any further. */
export const malformedRequests: readonly MalformedRequest[] = [
  { what: 'a TLS greeting', bytes: '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n', statuses: [400] },
  { what: 'noise', bytes: `${'\x00\xff\x80\x7f'.repeat(500)}\r\n\r\n`, statuses: [400] },
  { what: 'an empty method', bytes: ` / HTTP/1.1\r\n${host}\r\n`, statuses: [400] },
  {
    what: 'a method nobody knows',
    bytes: `FOO /v1/health HTTP/1.1\r\n${host}\r\n`,
    statuses: [400, 405, 501],
  },
  {
    what: 'a space in a header name',
    bytes: `GET / HTTP/1.1\r\n${host}Bad Header: 1\r\n\r\n`,
    statuses: [400],
  },
  { what: 'a NUL in a header', bytes: `GET / HTTP/1.1\r\n${host}X: a\0b\r\n\r\n`, statuses: [400] },
  { what: 'a folded header', bytes: `GET / HTTP/1.1\r\n${host}X: a\r\n b\r\n\r\n`, statuses: [400] },
  { what: 'a header without a colon', bytes: `GET / HTTP/1.1\r\n${host}nothing\r\n\r\n`, statuses: [400] },
  { what: 'bare line feeds', bytes: 'GET /livez HTTP/1.1\nHost: a\n\n', statuses: [400] },
  { what: 'a NUL in the path', bytes: `GET /v1/health\0 HTTP/1.1\r\n${host}\r\n`, statuses: [400] },
  { what: 'the preface of HTTP/2', bytes: 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', statuses: [400, 505] },
  { what: 'a version to come', bytes: `GET /livez HTTP/3.7\r\n${host}\r\n`, statuses: [400, 505] },
  { what: 'no Host', bytes: 'GET /livez HTTP/1.1\r\n\r\n', statuses: [400] },
  {
    what: 'a header of 20 kB',
    bytes: `GET / HTTP/1.1\r\n${host}X: ${'a'.repeat(20_000)}\r\n\r\n`,
    statuses: [431],
  },
  {
    what: 'thousands of headers',
    bytes: `GET / HTTP/1.1\r\n${host}${Array.from({ length: 3000 }, (_each, index) => `a${index}: 1\r\n`).join('')}\r\n`,
    statuses: [431],
  },
  {
    what: 'a length that is no number',
    bytes: `POST /v1/auth/sign-in HTTP/1.1\r\n${host}Content-Length: ten\r\n\r\n`,
    statuses: [400],
  },
  {
    what: 'a negative length',
    bytes: `POST /v1/auth/sign-in HTTP/1.1\r\n${host}Content-Length: -1\r\n\r\n`,
    statuses: [400],
  },
  {
    what: 'a length beyond all numbers',
    bytes: `POST /v1/auth/sign-in HTTP/1.1\r\n${host}Content-Length: 99999999999999999999999\r\n\r\n`,
    statuses: [400, 413],
  },
  {
    what: 'a chunk whose size is no number',
    bytes: `POST /v1/auth/sign-in HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\nzz\r\n{}\r\n0\r\n\r\n`,
    statuses: [400],
  },
  {
    what: 'CONNECT',
    bytes: `CONNECT example.com:443 HTTP/1.1\r\n${host}\r\n`,
    statuses: [400, 405],
    silence: true,
  },
];

/** Requests that two readers could take to end at different places. A second request hides behind each. */
export const smugglingRequests: readonly { readonly what: string; readonly bytes: string }[] = [
  {
    what: 'a length before chunks',
    bytes: `POST /livez HTTP/1.1\r\n${host}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`,
  },
  {
    what: 'chunks before a length',
    bytes: `POST /livez HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n${smuggled}`,
  },
  {
    what: 'two lengths',
    bytes: `POST /livez HTTP/1.1\r\n${host}Content-Length: 0\r\nContent-Length: 5\r\n\r\n${smuggled}`,
  },
  {
    what: 'a list of lengths',
    bytes: `POST /livez HTTP/1.1\r\n${host}Content-Length: 0, 5\r\n\r\n${smuggled}`,
  },
  {
    what: 'a space before the colon',
    bytes: `POST /livez HTTP/1.1\r\n${host}Content-Length : 5\r\n\r\nabcde${smuggled}`,
  },
  {
    what: 'an encoding that is nearly chunked',
    bytes: `POST /livez HTTP/1.1\r\n${host}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${smuggled}`,
  },
  {
    what: 'chunked that is not last',
    bytes: `POST /livez HTTP/1.1\r\n${host}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n${smuggled}`,
  },
  {
    what: 'a signed chunk size',
    bytes: `POST /livez HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n+0\r\n\r\n${smuggled}`,
  },
];
