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
  if (name === undefined) throw new TypeError('Which organization? Give one to the client or to the call.');
  return name;
}
