import type { Answer } from './client.ts';

/** What a server has sent on one connection: the answers that are complete, and whether bytes are left over. */
export interface RawAnswers {
  readonly answers: readonly Answer[];
  readonly incomplete: boolean;
}

interface Part {
  readonly bytes: Buffer;
  readonly next: number;
}

/**
 * Reads the HTTP/1.1 answers in the bytes of a connection, strictly: what is no answer fails.
 * `bodiless` are the places of answers to HEAD requests, which announce a body and send none.
 */
export function parseAnswers(bytes: Buffer, bodiless: ReadonlySet<number> = new Set()): RawAnswers {
  const answers: Answer[] = [];
  let at = 0;
  while (at < bytes.byteLength) {
    const end = bytes.indexOf('\r\n\r\n', at);
    if (end === -1) return { answers, incomplete: true };
    const [line = '', ...fields] = bytes.subarray(at, end).toString('latin1').split('\r\n');
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(`${line} `)?.[1]);
    if (!(status >= 100 && status <= 599)) throw new Error(`not an HTTP answer: ${line.slice(0, 200)}`);
    const headers = headersOf(fields);
    const empty = status < 200 || status === 204 || status === 304 || bodiless.has(answers.length);
    const part = empty ? { bytes: Buffer.alloc(0), next: end + 4 } : bodyAt(bytes, end + 4, headers);
    if (part === undefined) return { answers, incomplete: true };
    answers.push(answerOf(status, headers, part.bytes));
    at = part.next;
  }
  return { answers, incomplete: false };
}

function headersOf(fields: readonly string[]): Headers {
  const headers = new Headers();
  for (const field of fields) {
    const colon = field.indexOf(':');
    if (colon < 1) throw new Error(`not a header: ${field.slice(0, 200)}`);
    headers.append(field.slice(0, colon), field.slice(colon + 1).trim());
  }
  return headers;
}

function bodyAt(bytes: Buffer, start: number, headers: Headers): Part | undefined {
  if (headers.get('transfer-encoding') === 'chunked') return chunkedAt(bytes, start);
  const length = Number(headers.get('content-length') ?? 'NaN');
  if (!Number.isInteger(length)) throw new Error('an answer says neither its length nor that it is chunked');
  const next = start + length;
  return next > bytes.byteLength ? undefined : { bytes: bytes.subarray(start, next), next };
}

function chunkedAt(bytes: Buffer, start: number): Part | undefined {
  const chunks: Buffer[] = [];
  let at = start;
  for (;;) {
    const line = bytes.indexOf('\r\n', at);
    if (line === -1) return undefined;
    const size = Number.parseInt(bytes.subarray(at, line).toString('latin1'), 16);
    const next = line + 2 + size + 2;
    if (next > bytes.byteLength) return undefined;
    if (size === 0) return { bytes: Buffer.concat(chunks), next };
    chunks.push(bytes.subarray(line + 2, line + 2 + size));
    at = next;
  }
}

function answerOf(status: number, headers: Headers, bytes: Buffer): Answer {
  const text = bytes.toString('utf8');
  const isJson = /json/.test(headers.get('content-type') ?? '') && text !== '';
  return { status, headers, text, body: isJson ? JSON.parse(text) : undefined };
}
