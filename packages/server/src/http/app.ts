import fastify, { type FastifyInstance, type FastifyRequest } from 'fastify';
import type { Log } from '../platform/log.ts';
import type { Metrics } from '../platform/metrics.ts';
import { problem } from '../platform/problem.ts';
import { type Random, randomBase62 } from '../platform/random.ts';
import { type DocumentationParts, registerDocumentationRoutes } from './documentation-routes.ts';
import { type HeaderPolicy, headerWriter } from './headers.ts';
import { answerMalformed, refuseExpectations } from './malformed.ts';
import { KnownPaths, notFoundHandler } from './not-found.ts';
import { hasBody, type OperationServices, registerOperations } from './operations.ts';
import { problemOfError, sendProblem } from './problems.ts';
import { registerServiceRoutes, type ServiceRouteParts } from './service-routes.ts';

export interface AppParts extends OperationServices, ServiceRouteParts, DocumentationParts {
  readonly log: Log;
  readonly metrics: Metrics;
  readonly random: Random;
  readonly headers: HeaderPolicy;
  /** Which proxies may say where a request comes from. */
  readonly trustProxy: string[] | false;
  readonly timeouts: HttpTimeouts;
  /** Routes of adapters, such as the signed URLs of files. */
  readonly extend?: (app: FastifyInstance, paths: KnownPaths) => void;
}

export interface HttpTimeouts {
  /** For the request line and headers to arrive. */
  readonly headersMilliseconds: number;
  /** For the whole request to arrive. */
  readonly requestMilliseconds: number;
  /** For the next request on a connection. */
  readonly keepAliveMilliseconds: number;
  /** Without a byte in either direction. */
  readonly idleMilliseconds: number;
}

const clientRequestId = /^[A-Za-z0-9_.-]{1,64}$/;

/** Builds the HTTP service. It does not listen: tests and the process do that. */
export function buildApp(parts: AppParts): FastifyInstance {
  const { log, metrics, timeouts } = parts;
  const nextRequestId = requestIds(parts.random);
  const writeHeaders = headerWriter(parts.headers);
  const app = fastify({
    logger: false,
    trustProxy: parts.trustProxy,
    bodyLimit: parts.contract.limits.requestBytes,
    requestTimeout: timeouts.requestMilliseconds,
    connectionTimeout: timeouts.idleMilliseconds,
    keepAliveTimeout: timeouts.keepAliveMilliseconds,
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    http: {
      headersTimeout: timeouts.headersMilliseconds,
      connectionsCheckingInterval: Math.min(5000, timeouts.headersMilliseconds),
      maxHeaderSize: 16 * 1024,
      // Checked by us, so that the answer is a problem like every other.
      requireHostHeader: false,
      keepAlive: true,
      noDelay: true,
    },
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: 4096 },
    requestIdHeader: false,
    genReqId: (request) => {
      const given = request.headers['x-request-id'];
      return typeof given === 'string' && clientRequestId.test(given) ? given : nextRequestId();
    },
    clientErrorHandler: answerMalformed(nextRequestId),
    frameworkErrors: (error, request, reply) => {
      writeHeaders(request, reply);
      sendProblem(reply, problemOfError(error, 0) ?? problem('MALFORMED_REQUEST'));
    },
  });

  app.addHook('onRequest', (request, reply, next) => {
    writeHeaders(request, reply);
    // Without a body its type says nothing, and some clients send a type that is none.
    if (!hasBody(request)) delete request.raw.headers['content-type'];
    if (request.headers.host === undefined && request.raw.httpVersion === '1.1') {
      sendProblem(reply, problem('MALFORMED_REQUEST', 'The header Host is missing.'));
      return;
    }
    if (parts.isDraining()) {
      reply.header('connection', 'close');
      sendProblem(reply, problem('SHUTTING_DOWN', undefined, { retryAfterSeconds: 5 }));
      return;
    }
    next();
  });
  app.addHook('onResponse', (request, reply, next) => {
    const operation = request.routeOptions.config.operation ?? 'unknown';
    const milliseconds = reply.elapsedTime;
    metrics.observeRequest(operation, reply.statusCode, milliseconds / 1000);
    log.debug(
      { event: 'http.request', requestId: request.id, operation, status: reply.statusCode, milliseconds },
      'request answered',
    );
    // The connection of a request that was in hand when the shutdown began has nothing more to wait for.
    if (parts.isDraining()) setImmediate(() => app.server.closeIdleConnections());
    next();
  });

  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, parsed) => parsed(null, body));

  app.setErrorHandler((error, request, reply) => {
    const known = problemOfError(error, request.routeOptions.bodyLimit ?? 0);
    if (known?.code === 'BODY_TOO_LARGE' && isWorthDraining(request)) reply.removeHeader('connection');
    if (known !== undefined) return sendProblem(reply, known);
    const operation = request.routeOptions.config.operation;
    log.error({ event: 'http.fault', requestId: request.id, operation, error }, 'request failed');
    return sendProblem(reply, problem('INTERNAL'));
  });

  refuseExpectations(app.server, nextRequestId);
  const paths = new KnownPaths();
  registerOperations(app, parts, paths);
  registerServiceRoutes(app, parts, paths);
  registerDocumentationRoutes(app, parts, paths);
  parts.extend?.(app, paths);
  app.setNotFoundHandler(notFoundHandler(paths));
  return app;
}

const drainableBytes = 64 * 1024 * 1024;

/**
 * Whether to read the rest of a body that is too large. A client that is cut off while it still sends may
 * never see why; one that announced a bearable rest is let finish, and Node throws the bytes away.
 */
function isWorthDraining(request: FastifyRequest): boolean {
  return Number(request.headers['content-length']) <= drainableBytes;
}

/** Short ids that are unique over restarts and nodes: a random start and a counter. */
function requestIds(random: Random): () => string {
  const start = randomBase62(random, 10);
  let count = 0;
  return () => {
    count += 1;
    return `${start}-${count.toString(36)}`;
  };
}
