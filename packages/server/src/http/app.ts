import type { IncomingMessage } from 'node:http';
import fastify, { type FastifyInstance, type FastifyRequest } from 'fastify';
import type { Log } from '../platform/log.ts';
import type { Metrics } from '../platform/metrics.ts';
import { problem } from '../platform/problem.ts';
import { type Random, randomBase62 } from '../platform/random.ts';
import { type DocumentationParts, registerDocumentationRoutes } from './documentation-routes.ts';
import { commonHeaders, type HeaderPolicy, headerWriter } from './headers.ts';
import { openLanes } from './lane/lanes.ts';
import { answerMalformed, refuseExpectations } from './malformed.ts';
import { KnownPaths, notFoundHandler } from './not-found.ts';
import { hasBody, registerOperations } from './operations.ts';
import { problemOfError, sendProblem } from './problems.ts';
import { type OperationServices, operationRoutes } from './route.ts';
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
  const requestId = (given: string | string[] | undefined) =>
    typeof given === 'string' && clientRequestId.test(given) ? given : nextRequestId();
  const headers = commonHeaders(parts.headers);
  const writeHeaders = headerWriter(headers);
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
    genReqId: (request: IncomingMessage) => requestId(request.headers['x-request-id']),
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
  const answered = (operation: string, id: string, status: number, milliseconds: number) => {
    metrics.observeRequest(operation, status, milliseconds / 1000);
    log.debug({ event: 'http.request', requestId: id, operation, status, milliseconds }, 'request answered');
    // The connection of a request that was in hand when the shutdown began has nothing more to wait for.
    if (parts.isDraining()) setImmediate(() => app.server.closeIdleConnections());
  };
  app.addHook('onResponse', (request, reply, next) => {
    const operation = request.routeOptions.config.operation ?? 'unknown';
    answered(operation, request.id, reply.statusCode, reply.elapsedTime);
    next();
  });

  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, parsed) => parsed(null, body));

  const refusalOf = (error: unknown, id: string, operation: string | undefined, bodyBytes: number) => {
    const known = problemOfError(error, bodyBytes);
    if (known !== undefined) return known;
    log.error({ event: 'http.fault', requestId: id, operation, error }, 'request failed');
    return problem('INTERNAL');
  };
  app.setErrorHandler((error, request, reply) => {
    const { config, bodyLimit = 0 } = request.routeOptions;
    const refusal = refusalOf(error, request.id, config.operation, bodyLimit);
    if (refusal.code === 'BODY_TOO_LARGE' && isWorthDraining(request)) reply.removeHeader('connection');
    return sendProblem(reply, refusal);
  });

  refuseExpectations(app.server, nextRequestId);
  const paths = new KnownPaths();
  const routes = operationRoutes(parts);
  registerOperations(app, routes, paths);
  registerServiceRoutes(app, parts, paths);
  registerDocumentationRoutes(app, parts, paths);
  parts.extend?.(app, paths);
  app.setNotFoundHandler(notFoundHandler(paths));

  openLanes(app, timeouts, {
    routes,
    headers,
    requestId,
    isDraining: parts.isDraining,
    refusalOf: (error, id, { operation, bodyBytes }) => refusalOf(error, id, operation.id, bodyBytes),
    answered,
  });
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
