import { MillraceError } from './millrace-error.ts';
import type { CallOptions, Transport } from './transport.ts';

/** What a call within an organization takes. */
export interface OrganizationOptions extends CallOptions {
  /** The organization; the one of the client unless given. */
  readonly organization?: string | undefined;
}

/** A transport and the organization that calls are for unless they say otherwise. */
export interface Scope {
  readonly transport: Transport;
  readonly organization: string | undefined;
}

/** The organization of a call, or an error that says how to give one. */
export function organizationOf(scope: Scope, options: OrganizationOptions): string {
  const name = options.organization ?? scope.organization;
  if (name === undefined || name === '') {
    const detail = 'Which organization? Give one to the client or to the call.';
    throw new MillraceError({ code: 'ORGANIZATION_MISSING', status: 0, detail });
  }
  return name;
}
