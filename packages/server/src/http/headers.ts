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

export function headerWriter(policy: HeaderPolicy): (request: FastifyRequest, reply: FastifyReply) => void {
  const anyOrigin = policy.corsOrigins.includes('*');
  const origins = new Set(policy.corsOrigins);
  return (request, reply) => {
    // Through the reply: Node then writes them in one go, which it cannot do with headers that were set on
    // the raw response.
    reply.header('x-request-id', request.id);
    reply.headers(securityHeaders);
    if (policy.https) reply.header('strict-transport-security', 'max-age=31536000');
    if (!anyOrigin) reply.header('vary', 'origin');
    const origin = request.headers.origin;
    if (origin === undefined || (!anyOrigin && !origins.has(origin))) return;
    reply.header('access-control-allow-origin', anyOrigin ? '*' : origin);
    reply.header('access-control-expose-headers', exposed);
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
