import { type Access, type Role, roleIncludes } from '@millrace/contract';
import type { Authenticator, Caller } from '../identity/authenticator.ts';
import type { Organization } from '../organizations/organization-store.ts';
import type { Organizations } from '../organizations/organizations.ts';
import { type Problem, problem } from '../platform/problem.ts';

/** What a request may do, once it has been found out who makes it. */
export interface Permission {
  readonly caller: Caller | undefined;
  /** Set on every operation of an organization. */
  readonly organization: Organization | undefined;
  readonly role: Role | undefined;
}

const nobody: Permission = { caller: undefined, organization: undefined, role: undefined };

type Maybe<T> = T | Promise<T>;

/**
 * Decides whether a request may call an operation: 401 without a good credential, 404 outside one's
 * organizations, 403 where the role or the key does not reach. Answers without waiting when everything it
 * needs is in memory.
 */
export class Gatekeeper {
  readonly #authenticator: Authenticator;
  readonly #organizations: Organizations;

  constructor(authenticator: Authenticator, organizations: Organizations) {
    this.#authenticator = authenticator;
    this.#organizations = organizations;
  }

  authenticate(access: Access, authorization: string | undefined): Maybe<Caller | Problem | undefined> {
    if (access.kind === 'public' || access.kind === 'deployment') return undefined;
    return this.#authenticator.authenticate(authorization);
  }

  /** What the caller may do; `parameters` are those of the path, already valid. */
  permit(
    access: Access,
    caller: Caller | undefined,
    parameters: { organizationName?: string; topicName?: string },
  ): Maybe<Permission | Problem> {
    if (caller === undefined) return nobody;
    if (access.kind === 'account') return permitAccount(access, caller);
    const name = parameters.organizationName ?? '';
    const organization = this.#organizations.peek(name);
    if (organization === undefined) {
      return this.#organizations.find(name).then((found) => this.#within(access, caller, found, parameters));
    }
    return this.#within(access, caller, organization, parameters);
  }

  #within(
    access: Access,
    caller: Caller,
    organization: Organization | undefined,
    parameters: { topicName?: string },
  ): Maybe<Permission | Problem> {
    if (organization === undefined) return problem('ORGANIZATION_NOT_FOUND');
    if (caller.kind === 'key' && caller.key.organizationId !== organization.id) {
      return problem('ORGANIZATION_NOT_FOUND');
    }
    if (caller.kind === 'key' && caller.key.ownerType === 'TASK') {
      return permitTask(access, caller, organization, parameters.topicName);
    }
    const accountId = caller.kind === 'key' ? caller.key.ownerAccountId : caller.accountId;
    if (accountId === undefined) return problem('CREDENTIAL_INVALID');
    const role = this.#organizations.peekRole(organization.id, accountId);
    if (role !== undefined) return permitRole(access, caller, organization, role, parameters.topicName);
    return this.#organizations
      .role(organization.id, accountId)
      .then((found) => permitRole(access, caller, organization, found, parameters.topicName));
  }
}

function permitAccount(access: { apiKey: boolean }, caller: Caller): Permission | Problem {
  if (caller.kind === 'key') {
    if (!access.apiKey) return problem('SESSION_REQUIRED');
    if (isRestricted(caller)) return problem('KEY_RESTRICTED');
  }
  return { caller, organization: undefined, role: undefined };
}

function isRestricted(caller: Caller & { kind: 'key' }): boolean {
  return caller.key.ownerType === 'TASK' || caller.key.queueWhitelist !== undefined;
}

/** The key of a task: its whitelist holds the topics it may publish to. */
function permitTask(
  access: Access,
  caller: Caller & { kind: 'key' },
  organization: Organization,
  topicName: string | undefined,
): Permission | Problem {
  const permission: Permission = { caller, organization, role: 'MEMBER' };
  const use = access.kind === 'organization' ? access.taskKey : undefined;
  if (use === 'state') return permission;
  if (use === 'outputs' && allowsTopic(caller, topicName)) return permission;
  return problem('KEY_RESTRICTED');
}

function permitRole(
  access: Access,
  caller: Caller,
  organization: Organization,
  role: Role | undefined,
  topicName: string | undefined,
): Permission | Problem {
  if (role === undefined) return problem('ORGANIZATION_NOT_FOUND');
  if (access.kind !== 'organization') return { caller, organization, role };
  if (caller.kind === 'key' && caller.key.queueWhitelist !== undefined) {
    if (access.restrictedKey !== true || !allowsTopic(caller, topicName)) return problem('KEY_RESTRICTED');
  }
  const capped =
    caller.kind === 'key' && access.apiKeyRole !== undefined && roleIncludes(role, access.apiKeyRole);
  const effective = capped && access.apiKeyRole !== undefined ? access.apiKeyRole : role;
  if (!roleIncludes(effective, access.role))
    return problem('ROLE_TOO_LOW', `This needs the role ${access.role}.`);
  return { caller, organization, role: effective };
}

function allowsTopic(caller: Caller & { kind: 'key' }, topicName: string | undefined): boolean {
  return topicName !== undefined && (caller.key.queueWhitelist?.includes(topicName) ?? false);
}
