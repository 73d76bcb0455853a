import { once } from 'node:events';
import { connect } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createServer } from './node-http.ts';

/** V8 settles the layout of the objects of a class after the first seven. */
const exchanges = 10;
const warmMilliseconds = 2000;

/**
 * Gives back the memory that loading the code took. What is left behind by a start is never needed again,
 * and an idle process would keep it for ever: nothing else makes it collect. It costs one short pause,
 * before anybody is served.
 *
 * The classes of Node's server must be in use before that. A collection that falls between the first objects
 * of a class and those that settle its layout makes V8 forget what they looked like: all later ones are
 * dictionaries, and every request for the rest of the process takes about twice the time.
 */
export async function releaseStartMemory(): Promise<void> {
  await settleLayouts();
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('gc');
  if (typeof collect === 'function') collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
  setFlagsFromString('--no-expose-gc');
}

/** Answers a few requests on a server of its own, which nobody else can reach before it is gone again. */
async function settleLayouts(): Promise<void> {
  const server = createServer((request, response) => {
    request.on('data', () => {}).on('end', () => response.writeHead(200, ['content-length', '2']).end('{}'));
  });
  try {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening', { signal: AbortSignal.timeout(warmMilliseconds) });
    const address = server.address();
    if (address === null || typeof address === 'string') return;
    await Promise.all(Array.from({ length: exchanges }, () => exchange(address.port)));
  } catch {
    // A host that has no such address serves all the same.
  } finally {
    server.close();
  }
}

async function exchange(port: number): Promise<void> {
  const socket = connect({ port, host: '127.0.0.1' });
  socket.resume();
  socket.end('POST / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}');
  await once(socket, 'close', { signal: AbortSignal.timeout(warmMilliseconds) });
}
