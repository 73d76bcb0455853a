import { connect } from 'node:net';
import type { Sent } from './message-forms.ts';
import { within } from './service.ts';

export interface Received {
  readonly status: number;
  /** Names and values by turns, as they came. */
  readonly headers: readonly string[];
  readonly text: string;
}

/** The bytes of a request on a connection that stays. */
export function written(host: string, { path, query = '', headers = {}, body = '', chunked }: Sent): Buffer {
  const bytes = Buffer.from(body);
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    [value].flat().map((one) => `${name}: ${one}\r\n`),
  );
  const length =
    chunked === true ? 'Transfer-Encoding: chunked\r\n' : `Content-Length: ${bytes.byteLength}\r\n`;
  const head = `POST ${path}${query} HTTP/1.1\r\nHost: ${host}\r\n${lines.join('')}${length}\r\n`;
  const content =
    chunked === true
      ? [Buffer.from(`${bytes.byteLength.toString(16)}\r\n`), bytes, Buffer.from('\r\n0\r\n\r\n')]
      : [bytes];
  return Buffer.concat([Buffer.from(head, 'latin1'), ...content]);
}

/**
 * Sends a request in one piece on a connection of its own and answers with what comes back. With `after`,
 * another request goes before it, and its answer is left out.
 */
export async function ask(url: string, request: Buffer, after?: string): Promise<Received> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  let received: Buffer = Buffer.alloc(0);
  let skip = after === undefined ? 0 : 1;
  socket.write(after ?? request);
  const answer = new Promise<Received>((resolve, reject) => {
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('the connection was closed without an answer')));
    socket.on('data', (piece: Buffer) => {
      received = Buffer.concat([received, piece]);
      for (let first = firstOf(received); first !== undefined; first = firstOf(received)) {
        received = received.subarray(first.length);
        // Which only says that the rest of the request may come.
        if (first.status === 100) continue;
        if (skip === 0) return resolve(first);
        skip -= 1;
        socket.write(request);
      }
    });
  });
  try {
    return await within(answer, 15_000, 'no answer');
  } finally {
    socket.destroy();
  }
}

function firstOf(bytes: Buffer): (Received & { length: number }) | undefined {
  const end = bytes.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const [first = '', ...lines] = bytes.toString('latin1', 0, end).split('\r\n');
  const headers = lines.flatMap((line) => [
    line.slice(0, line.indexOf(':')),
    line.slice(line.indexOf(':') + 2),
  ]);
  const at = headers.findIndex((name) => name.toLowerCase() === 'content-length');
  const length = end + 4 + (at < 0 ? 0 : Number(headers[at + 1]));
  if (bytes.length < length) return undefined;
  return {
    status: Number(first.split(' ')[1]),
    headers,
    text: bytes.toString('utf8', end + 4, length),
    length,
  };
}
