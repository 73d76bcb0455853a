import { Readable } from 'node:stream';
import type { Contract, Operation, OperationId } from '@millrace/contract';
import { listOperations } from '@millrace/contract';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { addressPrefix } from '../identity/attempts.ts';
import type { RateLimits } from '../organizations/rate-limits.ts';
import { Problem, problem } from '../platform/problem.ts';
import type { Gatekeeper, Permission } from './access.ts';
import { checkMediaType, checkNoBody, parseJson } from './body.ts';
import { type Handlers, Stream } from './handlers.ts';
import type { KnownPaths } from './not-found.ts';
import { pendingOperations } from './pending.ts';
import { sendProblem } from './problems.ts';
import { RequestValidator } from './validation.ts';

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

/** A handler as the router sees it: the types of its parts are held by the schemas of the operation. */
type AnyHandler = (call: never) => Promise<{ status: number; body: unknown } | Problem>;

export interface OperationServices {
  readonly contract: Contract;
  readonly gatekeeper: Gatekeeper;
  readonly rateLimits: RateLimits;
  readonly handlers: Handlers;
  /** Aborted when the service stops. */
  readonly stopping: AbortSignal;
}

/** A body that arrives within this is as good as one that was there at once. */
const soonMilliseconds = 20;

const anyMethod = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

/** Makes a route of every operation of the contract. */
export function registerOperations(
  app: FastifyInstance,
  services: OperationServices,
  paths: KnownPaths,
): void {
  app.decorateRequest('permission', undefined);
  app.decorateRequest('visitorAddress', '');
  app.decorateRequest('admittedAt', 0);
  const handlers = new Map<string, AnyHandler>(Object.entries(services.handlers));
  for (const operation of listOperations(services.contract)) {
    const handler = handlers.get(operation.id) ?? pendingHandler(operation.id);
    const url = operation.path.replace(/\{(\w+)\}/g, ':$1');
    const methods = operation.method === 'ANY' ? [...anyMethod] : [operation.method];
    const validator = new RequestValidator(operation);
    app.route({
      method: methods,
      url,
      config: { operation: operation.id },
      bodyLimit: operation.limits?.bodyBytes ?? services.contract.limits.requestBytes,
      onRequest: admission(operation, validator, services),
      handler: (request, reply) => respond({ operation, validator, handler, services }, request, reply),
    });
    paths.add(url, operation.method === 'GET' ? ['GET', 'HEAD'] : methods);
  }
}

function pendingHandler(id: OperationId): AnyHandler {
  if (!pendingOperations.some((pending) => pending === id)) throw new Error(`operation ${id} has no handler`);
  return async () => problem('NOT_AVAILABLE_YET', `${id} comes with a later version of the server.`);
}

type Maybe<T> = T | Promise<T>;

/** Goes on with a value that may have to be waited for, without a wait where there is none. */
function then<T, U>(value: Maybe<T>, next: (value: T) => Maybe<U>): Maybe<U> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/**
 * Decides about a request before its body is read: who calls (401), whether the names in its path can be
 * right (400), whether the caller may (404, 403), whether the organization has requests left (429), and
 * whether the body can be of use (415).
 */
function admission(operation: Operation, validator: RequestValidator, services: OperationServices) {
  const { gatekeeper, rateLimits } = services;

  function decide(request: FastifyRequest, reply: FastifyReply): Maybe<Problem | undefined> {
    // Only the operations of a person ask where from, and finding out costs more than most of the rest. It is
    // asked now because a client that goes away later leaves no address behind.
    if (operation.access.kind !== 'organization') request.visitorAddress = addressPrefix(request.ip);
    // Where there is nothing to read its type says nothing, and some clients send a type that is none.
    if (operation.body === undefined) delete request.raw.headers['content-type'];
    if (hasTwoCredentials(request.raw.rawHeaders)) return problem('CREDENTIAL_INVALID');
    return then(gatekeeper.authenticate(operation.access, request.headers.authorization), (caller) => {
      if (caller instanceof Problem) return caller;
      const parameters = pathParameters(request);
      const invalidPath = validator.path(parameters);
      if (invalidPath !== undefined) return invalidPath;
      return then(gatekeeper.permit(operation.access, caller, parameters), (permission) => {
        if (permission instanceof Problem) return permission;
        request.permission = permission;
        request.admittedAt = performance.now();
        if (permission.organization === undefined) return checkBodyType(operation, request);
        return then(rateLimits.take(permission.organization), (decision) => {
          reply.header('ratelimit-policy', decision.policyHeader);
          reply.header('ratelimit', decision.header);
          return decision.problem ?? checkBodyType(operation, request);
        });
      });
    });
  }

  return (request: FastifyRequest, reply: FastifyReply, next: (error?: Error) => void): void => {
    const decision = decide(request, reply);
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

/** Node keeps the first of two; a proxy may have looked at the other. */
function hasTwoCredentials(rawHeaders: readonly string[]): boolean {
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index];
    if (name?.length === 13 && name.toLowerCase() === 'authorization') count += 1;
  }
  return count > 1;
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

interface Route {
  readonly operation: Operation;
  readonly validator: RequestValidator;
  readonly handler: AnyHandler;
  readonly services: OperationServices;
}

async function respond(route: Route, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const { operation, handler, services } = route;
  if (performance.now() - request.admittedAt > soonMilliseconds) {
    // A body may take its time, and whoever sends it may have lost the right meanwhile.
    const lost = await admitAgain(operation, services.gatekeeper, request);
    if (lost !== undefined) return sendProblem(reply, lost);
  }
  const call = parseCall(route, request);
  if (call instanceof Problem) return sendProblem(reply, call);
  // The one place where what the schemas have checked becomes what the types say.
  const outcome = await handler(call as never);
  if (outcome instanceof Problem) return sendProblem(reply, outcome);
  reply.code(outcome.status);
  if (outcome.body === undefined) return reply.send();
  if (outcome.body instanceof Stream) return sendStream(reply, outcome.body, services.stopping);
  return reply.header('content-type', 'application/json; charset=utf-8').send(JSON.stringify(outcome.body));
}

/** How long a reader has to take the end of a stream when the service stops. */
const streamEndMilliseconds = 1000;

function sendStream(reply: FastifyReply, body: Stream, stopping: AbortSignal): FastifyReply {
  reply.header('content-type', body.mediaType);
  // Nobody reads the body of an answer to HEAD, and one without an end would wait for its reader for ever.
  if (reply.request.method === 'HEAD') return reply.send();
  const { raw } = reply;
  const cut = () => setTimeout(() => raw.destroy(), streamEndMilliseconds).unref();
  stopping.addEventListener('abort', cut, { once: true });
  raw.once('close', () => stopping.removeEventListener('abort', cut));
  return reply.send(Readable.from(body.chunks));
}

async function admitAgain(
  operation: Operation,
  gatekeeper: Gatekeeper,
  request: FastifyRequest,
): Promise<Problem | undefined> {
  const caller = await gatekeeper.authenticate(operation.access, request.headers.authorization);
  if (caller instanceof Problem) return caller;
  const permission = await gatekeeper.permit(operation.access, caller, pathParameters(request));
  if (permission instanceof Problem) return permission;
  request.permission = permission;
  return undefined;
}

function parseCall({ operation, validator, services }: Route, request: FastifyRequest): object | Problem {
  const query = { ...(request.query as Record<string, unknown>) };
  const invalidQuery =
    operation.access.kind === 'deployment'
      ? undefined
      : (checkQueryEncoding(request.url) ?? validator.query(query));
  if (invalidQuery !== undefined) return invalidQuery;
  const headers = validator.headers(request.headers);
  if (headers instanceof Problem) return headers;
  const body = parseBody(operation, validator, request);
  if (body instanceof Problem) return body;
  return {
    path: pathParameters(request),
    query,
    headers: headers.values,
    body: body.value,
    visitor: { address: request.visitorAddress },
    content: {
      mediaType: request.headers['content-type'],
      encoding: request.headers['content-encoding'],
    },
    stillAllowed: async () => (await admitAgain(operation, services.gatekeeper, request)) === undefined,
    stopping: services.stopping,
    ...request.permission,
  };
}

/** The router takes a badly encoded query as it stands, which would let a name differ from what was meant. */
function checkQueryEncoding(url: string): Problem | undefined {
  const start = url.indexOf('?');
  if (start < 0 || !url.includes('%', start)) return undefined;
  try {
    decodeURIComponent(url.slice(start));
    return undefined;
  } catch {
    return problem('MALFORMED_REQUEST', 'The query of the URL is not correctly percent-encoded.');
  }
}

function parseBody(
  operation: Operation,
  validator: RequestValidator,
  request: FastifyRequest,
): { value: unknown } | Problem {
  if (operation.body === undefined) return checkNoBody(request.body) ?? { value: undefined };
  if ('raw' in operation.body) return { value: request.body ?? new Uint8Array() };
  const parsed = parseJson(operation, request.body);
  if (parsed instanceof Problem) return parsed;
  return validator.body(parsed.value) ?? parsed;
}
