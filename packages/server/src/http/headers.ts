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

export function headerWriter(policy: HeaderPolicy): (request: FastifyRequest, reply: FastifyReply) => void {
  const anyOrigin = policy.corsOrigins.includes('*');
  const origins = new Set(policy.corsOrigins);
  return (request, reply) => {
    const { raw } = reply;
    raw.setHeader('x-request-id', request.id);
    raw.setHeader('x-content-type-options', 'nosniff');
    raw.setHeader('cache-control', 'no-store');
    raw.setHeader('referrer-policy', 'no-referrer');
    raw.setHeader('content-security-policy', "default-src 'none'; frame-ancestors 'none'");
    if (policy.https) raw.setHeader('strict-transport-security', 'max-age=31536000');
    const origin = request.headers.origin;
    if (origin === undefined) return;
    if (!anyOrigin) raw.setHeader('vary', 'origin');
    if (!anyOrigin && !origins.has(origin)) return;
    raw.setHeader('access-control-allow-origin', anyOrigin ? '*' : origin);
    raw.setHeader('access-control-expose-headers', exposed);
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
