import type { Contract, Operation, OperationId } from '@millrace/contract';
import { listOperations } from '@millrace/contract';
import type { RateLimits } from '../organizations/rate-limits.ts';
import type { Problem } from '../platform/problem.ts';
import type { Gatekeeper } from './access.ts';
import { apartOperation, type Handlers } from './handlers.ts';
import { RequestValidator } from './validation.ts';

/** What a handler answers when it is no problem. */
export interface Outcome {
  readonly status: number;
  readonly body: unknown;
}

/** A handler as the router sees it: the types of its parts are held by the schemas of the operation. */
type AnyHandler = (call: never) => Promise<Outcome | Problem>;

export interface OperationServices {
  readonly contract: Contract;
  readonly gatekeeper: Gatekeeper;
  readonly rateLimits: RateLimits;
  readonly handlers: Handlers;
  /** Aborted when the service stops. */
  readonly stopping: AbortSignal;
}

/** An operation with what it takes to carry it out. */
export interface OperationRoute {
  readonly operation: Operation<OperationId>;
  readonly validator: RequestValidator;
  readonly handler: AnyHandler;
  readonly services: OperationServices;
  /** The largest body it takes. */
  readonly bodyBytes: number;
}

/** A route for every operation of the contract but the one that has its own. */
export function operationRoutes(services: OperationServices): OperationRoute[] {
  const handlers = new Map<string, AnyHandler>(Object.entries(services.handlers));
  const own = listOperations(services.contract).filter(({ id }) => id !== apartOperation);
  return own.map((operation) => ({
    operation,
    validator: new RequestValidator(operation),
    handler: handlerOf(handlers, operation.id),
    services,
    bodyBytes: operation.limits?.bodyBytes ?? services.contract.limits.requestBytes,
  }));
}

function handlerOf(handlers: ReadonlyMap<string, AnyHandler>, id: OperationId): AnyHandler {
  const handler = handlers.get(id);
  if (handler === undefined) throw new Error(`operation ${id} has no handler`);
  return handler;
}
