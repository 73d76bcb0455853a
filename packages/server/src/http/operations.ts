import { Readable } from 'node:stream';
import type { Operation } from '@millrace/contract';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { addressPrefix } from '../identity/attempts.ts';
import { Problem } from '../platform/problem.ts';
import type { Permission } from './access.ts';
import { type Admission, admit, then } from './admission.ts';
import { carryOut } from './arrival.ts';
import { checkMediaType } from './body.ts';
import { Stream } from './handlers.ts';
import type { KnownPaths } from './not-found.ts';
import { sendProblem } from './problems.ts';
import type { OperationRoute } from './route.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** What the request may do; set before the handler of an operation runs. */
    permission: Permission | undefined;
    /** When the request was let in, by a clock that only goes forward. */
    admittedAt: number;
    /** Where the request comes from; empty on operations that do not ask. */
    visitorAddress: string;
  }
  interface FastifyContextConfig {
    /** The name under which requests of a route are counted. */
    operation?: string;
  }
}

/** What an answer in JSON is said to be. */
export const jsonMediaType = 'application/json; charset=utf-8';

const anyMethod = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

/** Makes a route of the framework of every operation. */
export function registerOperations(
  app: FastifyInstance,
  routes: readonly OperationRoute[],
  paths: KnownPaths,
): void {
  app.decorateRequest('permission', undefined);
  app.decorateRequest('visitorAddress', '');
  app.decorateRequest('admittedAt', 0);
  for (const route of routes) {
    const { operation, bodyBytes } = route;
    const url = operation.path.replace(/\{(\w+)\}/g, ':$1');
    const methods = operation.method === 'ANY' ? [...anyMethod] : [operation.method];
    app.route({
      method: methods,
      url,
      config: { operation: operation.id },
      bodyLimit: bodyBytes,
      onRequest: admission(route),
      handler: (request, reply) => respond(route, request, reply),
    });
    paths.add(url, operation.method === 'GET' ? ['GET', 'HEAD'] : methods);
  }
}

/** Lets a request in, or answers it before its body is read. */
function admission(route: OperationRoute) {
  const { operation } = route;

  function conclude(request: FastifyRequest, reply: FastifyReply, admission: Admission): Problem | undefined {
    const { refusal, permission, limit } = admission;
    if (limit !== undefined) {
      reply.header('ratelimit-policy', limit.policyHeader);
      reply.header('ratelimit', limit.header);
    }
    request.permission = permission;
    request.admittedAt = performance.now();
    return refusal ?? checkBodyType(operation, request);
  }

  return (request: FastifyRequest, reply: FastifyReply, next: (error?: Error) => void): void => {
    // Only the operations of a person ask where from, and finding out costs more than most of the rest. It is
    // asked now because a client that goes away later leaves no address behind.
    if (operation.access.kind !== 'organization') request.visitorAddress = addressPrefix(request.ip);
    // Where there is nothing to read its type says nothing, and some clients send a type that is none.
    if (operation.body === undefined) delete request.raw.headers['content-type'];
    const decision = then(admit(route, request.raw, pathParameters(request)), (decided) =>
      conclude(request, reply, decided),
    );
    if (decision instanceof Promise) {
      decision
        .then((refusal) => {
          if (refusal === undefined) next();
          else sendProblem(reply, refusal);
        })
        .catch(next);
    } else if (decision === undefined) next();
    else sendProblem(reply, decision);
  };
}

function checkBodyType(operation: Operation, request: FastifyRequest): Problem | undefined {
  return hasBody(request) ? checkMediaType(operation, request.headers) : undefined;
}

export function hasBody(request: FastifyRequest): boolean {
  const length = request.headers['content-length'];
  return request.headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0');
}

/** The rest of a wildcard path is the task's business and no parameter of ours. */
function pathParameters(request: FastifyRequest): Record<string, string> {
  const parameters = request.params as Record<string, string>;
  if (!('*' in parameters)) return parameters;
  const { '*': _rest, ...named } = parameters;
  return named;
}

async function respond(
  route: OperationRoute,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const outcome = await carryOut(route, {
    url: request.url,
    headers: request.headers,
    parameters: pathParameters(request),
    query: { ...(request.query as Record<string, unknown>) },
    body: request.body,
    visitorAddress: request.visitorAddress,
    admittedAt: request.admittedAt,
    permission: request.permission,
  });
  if (outcome instanceof Problem) return sendProblem(reply, outcome);
  reply.code(outcome.status);
  if (outcome.body === undefined) return reply.send();
  if (outcome.body instanceof Stream) return sendStream(reply, outcome.body, route.services.stopping);
  return reply.header('content-type', jsonMediaType).send(JSON.stringify(outcome.body));
}

/** How long a reader has to take the end of a stream when the service stops. */
const streamEndMilliseconds = 1000;

function sendStream(reply: FastifyReply, body: Stream, stopping: AbortSignal): FastifyReply {
  reply.header('content-type', body.mediaType);
  if (body.fileName !== undefined) {
    reply.header('content-disposition', `attachment; filename="${body.fileName}"`);
  }
  // Nobody reads the body of an answer to HEAD, and one without an end would wait for its reader for ever.
  if (reply.request.method === 'HEAD') return reply.send();
  const { raw } = reply;
  const cut = () => setTimeout(() => raw.destroy(), streamEndMilliseconds).unref();
  stopping.addEventListener('abort', cut, { once: true });
  raw.once('close', () => stopping.removeEventListener('abort', cut));
  return reply.send(Readable.from(body.chunks));
}
