import type { IncomingHttpHeaders } from 'node:http';

/** The head of a request in its usual form. */
export interface Head {
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  /** Where the body begins. */
  readonly end: number;
}

const begin = 'POST /';
const version = ' HTTP/1.1';
const longestHead = 16 * 1024;
const mostHeaders = 64;

/** One header on one line, of characters that mean themselves; anything else is for Node's own parser. */
const headerLine = /^([A-Za-z0-9-]+):[ \t]*([\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)[ \t]*$/;
/** What changes how a request is read or what becomes of its connection. */
const special = new Set(['te', 'trailer', 'upgrade', 'keep-alive', 'proxy-connection', 'http2-settings']);

/**
 * Reads the heads of the requests of one connection. A client writes the same headers again and again, so
 * those of the request before are remembered, and when the bytes are the same they mean the same.
 */
export class HeadReader {
  #block: Buffer | undefined;
  #headers: IncomingHttpHeaders = {};

  /** Undefined when the head is not there in full, or written in an unusual way. */
  read(bytes: Buffer): Head | undefined {
    const lineEnd = bytes.indexOf(13);
    if (lineEnd < 0 || lineEnd > longestHead || bytes[lineEnd + 1] !== 10) return undefined;
    const line = bytes.toString('latin1', 0, lineEnd);
    if (!line.startsWith(begin) || !line.endsWith(version)) return undefined;
    const end = this.#endOfBlock(bytes, lineEnd);
    if (end === undefined) return undefined;
    return { url: line.slice(begin.length - 1, -version.length), headers: this.#headers, end };
  }

  #endOfBlock(bytes: Buffer, start: number): number | undefined {
    const known = this.#block;
    if (known !== undefined) {
      const end = start + known.length;
      const isThere = end <= bytes.length && end <= longestHead;
      if (isThere && bytes.compare(known, 0, known.length, start, end) === 0) return end;
    }
    const last = bytes.indexOf('\r\n\r\n', start, 'latin1');
    if (last < 0 || last > longestHead) return undefined;
    const end = last + 4;
    const headers = parseHeaders(bytes.toString('latin1', start + 2, last));
    if (headers === undefined) return undefined;
    this.#headers = headers;
    this.#block = Buffer.from(bytes.subarray(start, end));
    return end;
  }
}

/** Undefined when one is given twice, changes how to read the request, or is unusual in any other way. */
function parseHeaders(text: string): IncomingHttpHeaders | undefined {
  const lines = text.split('\r\n');
  if (lines.length > mostHeaders) return undefined;
  const headers: IncomingHttpHeaders = {};
  for (const line of lines) {
    const match = headerLine.exec(line);
    if (match === null) return undefined;
    const name = (match[1] ?? '').toLowerCase();
    const value = match[2] ?? '';
    if (Object.hasOwn(headers, name) || special.has(name)) return undefined;
    if (name === 'connection' && value.toLowerCase() !== 'keep-alive') return undefined;
    if (name === 'content-length' && !/^[1-9]\d{0,8}$/.test(value)) return undefined;
    headers[name] = value;
  }
  return headers;
}
