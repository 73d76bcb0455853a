import type { IncomingMessage } from 'node:http';
import type { RateLimitAnswer } from '../organizations/rate-limits.ts';
import { Problem, problem } from '../platform/problem.ts';
import type { Permission } from './access.ts';
import type { OperationRoute } from './route.ts';

type Maybe<T> = T | Promise<T>;

/** What was decided about a request before its body is read. */
export interface Admission {
  /** Why the request goes no further. */
  readonly refusal?: Problem | undefined;
  readonly permission?: Permission | undefined;
  /** What its organization has left, once that was asked. */
  readonly limit?: RateLimitAnswer | undefined;
}

/**
 * Decides about a request before its body is read: who calls (401), whether the names in its path can be
 * right (400), whether the caller may (404, 403), and whether the organization has requests left (429).
 * Answers without waiting when everything it needs is in memory.
 */
export function admit(
  { operation, validator, services }: OperationRoute,
  { headers, rawHeaders }: Pick<IncomingMessage, 'headers' | 'rawHeaders'>,
  parameters: Record<string, string>,
): Maybe<Admission> {
  const { gatekeeper, rateLimits } = services;
  if (hasTwoCredentials(rawHeaders)) return { refusal: problem('CREDENTIAL_INVALID') };
  return then(gatekeeper.authenticate(operation.access, headers.authorization), (caller) => {
    if (caller instanceof Problem) return { refusal: caller };
    const invalidPath = validator.path(parameters);
    if (invalidPath !== undefined) return { refusal: invalidPath };
    return then(gatekeeper.permit(operation.access, caller, parameters), (permission) => {
      if (permission instanceof Problem) return { refusal: permission };
      if (permission.organization === undefined) return { permission };
      return then(rateLimits.take(permission.organization), (limit) => ({
        refusal: limit.problem,
        permission,
        limit,
      }));
    });
  });
}

/** Goes on with a value that may have to be waited for, without a wait where there is none. */
export function then<T, U>(value: Maybe<T>, next: (value: T) => Maybe<U>): Maybe<U> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/** Node keeps the first of two; a proxy may have looked at the other. */
export function hasTwoCredentials(rawHeaders: readonly string[]): boolean {
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index];
    if (name?.length === 13 && name.toLowerCase() === 'authorization') count += 1;
  }
  return count > 1;
}
