import type { IncomingMessage, ServerResponse } from 'node:http';
import { readBody } from './body.ts';
import { destinations, readRequest } from './lane-routes.ts';
import { type Client, type LaneParts, Passage } from './passage.ts';

/**
 * The way past the framework for the operations that are called most.
 *
 * A request in its usual form is let in, read, carried out and answered here. One that is written in any
 * unusual way is left untouched for the framework. What a client sees must not tell which way its request
 * went; a test compares them. Most requests come by a way that is shorter still, see `SocketLane`.
 */
export type FastLane = (request: IncomingMessage, response: ServerResponse) => boolean;

/** Makes the lane, which says of each request whether it takes it. */
export function fastLane(parts: LaneParts): FastLane {
  const find = destinations(parts.routes);
  return (request, response) => {
    const { method, httpVersion, headers, url = '' } = request;
    if (method !== 'POST' || httpVersion !== '1.1' || parts.isDraining()) return false;
    const read = readRequest(find, url, headers);
    if (read === undefined) return false;
    const passage = new Passage(parts, read, clientOf(response));
    passage.enter(request.rawHeaders, () => readBody(request, read.bodyBytes, passage.carryOut));
    return true;
  };
}

function clientOf(response: ServerResponse): Client {
  return {
    reply(status, headers, body) {
      const bytes = Buffer.byteLength(body);
      headers.push('content-length', String(bytes));
      // Text of plain ASCII is the same in both, and quicker to write as the simpler one.
      response.writeHead(status, headers).end(body, bytes === body.length ? 'latin1' : 'utf8');
    },
    giveUp: () => response.destroy(),
  };
}
