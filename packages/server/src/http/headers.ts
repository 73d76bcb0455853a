import type { FastifyReply, FastifyRequest } from 'fastify';

/**
 * Headers of every answer. The API is called with a bearer token and never with a cookie, so any page may
 * call it: a page can only send what its user gave it.
 */
export interface HeaderPolicy {
  /** Origins that may read answers; `*` for all. */
  readonly corsOrigins: readonly string[];
  /** Whether the service is reached over TLS. */
  readonly https: boolean;
}

const exposed =
  'x-request-id, ratelimit, ratelimit-policy, retry-after, allow, content-disposition, content-range, etag';
const allowedHeaders =
  'authorization, content-type, content-encoding, accept, range, invocationtype, x-request-id';
const allowedMethods = 'GET, HEAD, PUT, POST, PATCH, DELETE';

/** What every answer carries, whatever it is. */
export const securityHeaders = {
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
} as const;

/** Names and values by turns. */
export type HeaderList = string[];

/** What an answer carries, whatever it is, given the id of its request and the page that it comes from. */
export type CommonHeaders = (requestId: string, origin: string | undefined) => HeaderList;

export function commonHeaders(policy: HeaderPolicy): CommonHeaders {
  const anyOrigin = policy.corsOrigins.includes('*');
  const origins = new Set(policy.corsOrigins);
  const always = Object.entries(securityHeaders).flat();
  if (policy.https) always.push('strict-transport-security', 'max-age=31536000');
  if (!anyOrigin) always.push('vary', 'origin');
  return (requestId, origin) => {
    const headers = ['x-request-id', requestId, ...always];
    if (origin === undefined || (!anyOrigin && !origins.has(origin))) return headers;
    headers.push('access-control-allow-origin', anyOrigin ? '*' : origin);
    headers.push('access-control-expose-headers', exposed);
    return headers;
  };
}

export function headerWriter(common: CommonHeaders): (request: FastifyRequest, reply: FastifyReply) => void {
  return (request, reply) => {
    const headers = common(request.id, request.headers.origin);
    // Through the reply: Node then writes them in one go, which it cannot do with headers that were set on
    // the raw response.
    for (let index = 0; index < headers.length; index += 2) {
      reply.header(headers[index] ?? '', headers[index + 1]);
    }
  };
}

/** Answers the question a browser asks before a request from another page. */
export function answerPreflight(reply: FastifyReply): FastifyReply {
  return reply
    .header('access-control-allow-methods', allowedMethods)
    .header('access-control-allow-headers', allowedHeaders)
    .header('access-control-max-age', '7200')
    .code(204)
    .send();
}
