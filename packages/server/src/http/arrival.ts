import type { IncomingHttpHeaders } from 'node:http';
import type { Operation } from '@millrace/contract';
import { Problem, problem } from '../platform/problem.ts';
import type { Gatekeeper, Permission } from './access.ts';
import { checkNoBody, parseJson } from './body.ts';
import type { OperationRoute, Outcome } from './route.ts';
import type { RequestValidator } from './validation.ts';

/** A request that was let in and is there in full, whichever way it came. */
export interface Arrival {
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  /** Those of the path that have a name. */
  readonly parameters: Record<string, string>;
  /** The query as text; what the schema says is made of it in place. */
  readonly query: Record<string, unknown>;
  readonly body: unknown;
  /** Where the request comes from; empty on operations that do not ask. */
  readonly visitorAddress: string;
  /** When it was let in, by a clock that only goes forward. */
  readonly admittedAt: number;
  permission: Permission | undefined;
}

/** A body that arrives within this is as good as one that was there at once. */
const soonMilliseconds = 20;

/** Carries out an operation: parses what was sent and hands it to the handler. */
export function carryOut(route: OperationRoute, arrival: Arrival): Promise<Outcome | Problem> {
  if (performance.now() - arrival.admittedAt <= soonMilliseconds) return handle(route, arrival);
  // A body may take its time, and whoever sends it may have lost the right meanwhile.
  return admitAgain(route.operation, route.services.gatekeeper, arrival).then(
    (lost) => lost ?? handle(route, arrival),
  );
}

function handle(route: OperationRoute, arrival: Arrival): Promise<Outcome | Problem> {
  const call = parseCall(route, arrival);
  if (call instanceof Problem) return Promise.resolve(call);
  // The one place where what the schemas have checked becomes what the types say.
  return route.handler(call as never);
}

async function admitAgain(
  operation: Operation,
  gatekeeper: Gatekeeper,
  arrival: Arrival,
): Promise<Problem | undefined> {
  const caller = await gatekeeper.authenticate(operation.access, arrival.headers.authorization);
  if (caller instanceof Problem) return caller;
  const permission = await gatekeeper.permit(operation.access, caller, arrival.parameters);
  if (permission instanceof Problem) return permission;
  arrival.permission = permission;
  return undefined;
}

function parseCall({ operation, validator, services }: OperationRoute, arrival: Arrival): object | Problem {
  const { url, headers: sent, query } = arrival;
  const invalidQuery =
    operation.access.kind === 'deployment' ? undefined : (checkQueryEncoding(url) ?? validator.query(query));
  if (invalidQuery !== undefined) return invalidQuery;
  const headers = validator.headers(sent);
  if (headers instanceof Problem) return headers;
  const body = parseBody(operation, validator, arrival.body);
  if (body instanceof Problem) return body;
  return {
    path: arrival.parameters,
    query,
    headers: headers.values,
    body: body.value,
    visitor: { address: arrival.visitorAddress },
    content: { mediaType: sent['content-type'], encoding: sent['content-encoding'] },
    accept: sent.accept,
    stillAllowed: async () => (await admitAgain(operation, services.gatekeeper, arrival)) === undefined,
    stopping: services.stopping,
    ...arrival.permission,
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
  body: unknown,
): { value: unknown } | Problem {
  if (operation.body === undefined) return checkNoBody(body) ?? { value: undefined };
  if ('raw' in operation.body) return { value: body ?? new Uint8Array() };
  const parsed = parseJson(operation, body);
  if (parsed instanceof Problem) return parsed;
  return validator.body(parsed.value) ?? parsed;
}
