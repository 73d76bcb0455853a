import type { NamedType, RateLimitLevelName, Role } from '@millrace/contract';
import { type OrganizationOptions, organizationOf, type Scope } from './scope.ts';
import type { CallOptions } from './transport.ts';

/** Organizations, their members and their rate limit. */
export class Organizations {
  readonly #scope: Scope;

  constructor(scope: Scope) {
    this.#scope = scope;
  }

  /**
   * Makes an organization with the caller as its first ADMIN.
   *
   * @example
   * ```ts
   * await millrace.organizations.create('acme');
   * ```
   */
  create(organizationName: string, options: CallOptions = {}): Promise<undefined> {
    return this.#scope.transport.call('createOrganization', { query: { organizationName }, ...options });
  }

  /**
   * Adds the owner of an email as a MEMBER; with a username, an account is made where there is none.
   *
   * @example
   * ```ts
   * await millrace.organizations.invite('grace@example.com', { username: 'grace' });
   * ```
   */
  invite(
    email: string,
    options: OrganizationOptions & { readonly username?: string } = {},
  ): Promise<undefined> {
    const { username, signal } = options;
    return this.#scope.transport.call('inviteToOrganization', {
      path: { organizationName: organizationOf(this.#scope, options) },
      query: { email, ...(username === undefined ? {} : { username }) },
      signal,
    });
  }

  /**
   * Who belongs to the organization, with roles.
   *
   * @example
   * ```ts
   * for (const member of await millrace.organizations.members()) console.log(member.username, member.role);
   * ```
   */
  async members(options: OrganizationOptions = {}): Promise<NamedType<'Member'>[]> {
    const answer = await this.#scope.transport.call('listMembers', {
      path: { organizationName: organizationOf(this.#scope, options) },
      signal: options.signal,
    });
    return answer.members;
  }

  /**
   * Gives a member another role.
   *
   * @example
   * ```ts
   * await millrace.organizations.setRole('grace', 'VIEWER');
   * ```
   */
  async setRole(username: string, role: Role, options: OrganizationOptions = {}): Promise<void> {
    await this.#scope.transport.call('setMemberRole', {
      path: { organizationName: organizationOf(this.#scope, options), username },
      body: { role },
      signal: options.signal,
    });
  }

  /**
   * Takes a member out of the organization, at once.
   *
   * @example
   * ```ts
   * await millrace.organizations.removeMember('grace');
   * ```
   */
  async removeMember(username: string, options: OrganizationOptions = {}): Promise<void> {
    await this.#scope.transport.call('removeMember', {
      path: { organizationName: organizationOf(this.#scope, options), username },
      signal: options.signal,
    });
  }

  /**
   * The level of requests a second that the organization may make.
   *
   * @example
   * ```ts
   * const level = await millrace.organizations.rateLimit();
   * ```
   */
  rateLimit(options: OrganizationOptions = {}): Promise<RateLimitLevelName> {
    return this.#scope.transport.call('rateLimitGet', {
      path: { organizationName: organizationOf(this.#scope, options) },
      signal: options.signal,
    });
  }

  /**
   * Changes the level of requests a second.
   *
   * @example
   * ```ts
   * await millrace.organizations.setRateLimit('HUNDRED');
   * ```
   */
  async setRateLimit(level: RateLimitLevelName, options: OrganizationOptions = {}): Promise<void> {
    await this.#scope.transport.call('rateLimitAdjust', {
      path: { organizationName: organizationOf(this.#scope, options) },
      query: { level },
      signal: options.signal,
    });
  }
}

/** Credentials for programs, each good for one organization. */
export class ApiKeys {
  readonly #scope: Scope;

  constructor(scope: Scope) {
    this.#scope = scope;
  }

  /**
   * Makes a key. Its secret is shown this once.
   *
   * @example
   * ```ts
   * const { secret } = await millrace.keys.create({ description: 'the web shop', queueWhitelist: ['clicks'] });
   * ```
   */
  create(
    request: NamedType<'ApiKeyCreate'>,
    options: OrganizationOptions = {},
  ): Promise<NamedType<'ApiKeyWithSecret'>> {
    return this.#scope.transport.call('createApiKey', {
      path: { organizationName: organizationOf(this.#scope, options) },
      body: request,
      signal: options.signal,
    });
  }

  /**
   * The keys of the organization that the caller may see.
   *
   * @example
   * ```ts
   * const keys = await millrace.keys.list();
   * ```
   */
  async list(options: OrganizationOptions = {}): Promise<NamedType<'ApiKey'>[]> {
    const answer = await this.#scope.transport.call('listApiKeys', {
      path: { organizationName: organizationOf(this.#scope, options) },
      signal: options.signal,
    });
    return answer.keys;
  }

  /**
   * Revokes a key within a second everywhere.
   *
   * @example
   * ```ts
   * await millrace.keys.revoke('k4Jm2nXv5KpLw3RtYb7Zc1');
   * ```
   */
  async revoke(apiKeyId: string, options: OrganizationOptions = {}): Promise<void> {
    await this.#scope.transport.call('revokeApiKey', {
      path: { organizationName: organizationOf(this.#scope, options), apiKeyId },
      signal: options.signal,
    });
  }
}
