import { type RateLimitLevelName, type Role, roleIncludes } from '@millrace/contract';
import type { Database } from '../database/database.ts';
import { isUniqueViolation } from '../database/errors.ts';
import type { ApiKeys } from '../identity/api-keys.ts';
import { LoadingCache } from '../platform/cache.ts';
import type { Clock } from '../platform/clock.ts';
import { type Problem, problem } from '../platform/problem.ts';
import { type Random, randomId } from '../platform/random.ts';
import {
  countAdmins,
  deleteMember,
  findMember,
  findOrganization,
  findRole,
  insertMember,
  insertOrganization,
  listMembers,
  listMemberships,
  type Member,
  type Membership,
  type Organization,
  type Queries,
  setRateLimitLevel,
  setRole,
} from './organization-store.ts';

const organizationChannel = 'organizations';
const memberChannel = 'members';

/** Organizations, who belongs to them, and what each member may do. */
export class Organizations {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #keys: ApiKeys;
  readonly #byName: LoadingCache<Organization>;
  readonly #roles: LoadingCache<Role>;
  readonly #memberships: LoadingCache<readonly Membership[]>;

  constructor(parts: { database: Database; clock: Clock; random: Random; keys: ApiKeys }) {
    const { database, clock } = parts;
    this.#database = database;
    this.#clock = clock;
    this.#random = parts.random;
    this.#keys = parts.keys;
    const trust = { clock, trustMilliseconds: database.trustMilliseconds, capacity: 50_000 };
    this.#byName = new LoadingCache({ load: (name) => findOrganization(database.query, name), ...trust });
    this.#roles = new LoadingCache({
      load: (membership) => {
        const [organizationId = '', accountId = ''] = membership.split('/');
        return findRole(database.query, organizationId, accountId);
      },
      ...trust,
    });
    this.#memberships = new LoadingCache({ load: (id) => listMemberships(database.query, id), ...trust });
    database.listen(
      organizationChannel,
      (name) => this.#byName.invalidate(name),
      () => this.#byName.clear(),
    );
    database.listen(
      memberChannel,
      (membership) => {
        this.#roles.invalidate(membership);
        this.#memberships.invalidate(membership.split('/')[1] ?? '');
      },
      () => {
        this.#roles.clear();
        this.#memberships.clear();
      },
    );
  }

  async create(name: string, accountId: string): Promise<Problem | undefined> {
    const id = randomId(this.#random);
    const now = this.#clock.now();
    try {
      await this.#database.transaction(async (transaction) => {
        await insertOrganization(transaction, { id, name, createdBy: accountId, now });
        await insertMember(transaction, { organizationId: id, accountId, role: 'ADMIN', now });
      });
    } catch (error) {
      if (isUniqueViolation(error)) {
        return problem('NAME_TAKEN', `The organization name ${name} is taken. Choose another.`);
      }
      throw error;
    }
    await this.announceMember(id, accountId);
    return undefined;
  }

  /** The organization if it is at hand, without waiting. */
  peek(name: string): Organization | undefined {
    return this.#byName.peek(name.toLowerCase());
  }

  find(name: string): Promise<Organization | undefined> {
    return this.#byName.get(name.toLowerCase());
  }

  peekRole(organizationId: string, accountId: string): Role | undefined {
    return this.#roles.peek(`${organizationId}/${accountId}`);
  }

  role(organizationId: string, accountId: string): Promise<Role | undefined> {
    return this.#roles.get(`${organizationId}/${accountId}`);
  }

  /**
   * Asks inside a transaction whether an account still has a role, for changes that must not outlive it:
   * between the moment a request was let in and now, the caller may have been removed.
   */
  async requireRole(
    queries: Queries,
    organizationId: string,
    accountId: string | undefined,
    needed: Role,
  ): Promise<Problem | undefined> {
    const role = accountId === undefined ? undefined : await findRole(queries, organizationId, accountId);
    if (role === undefined) return problem('ORGANIZATION_NOT_FOUND');
    return roleIncludes(role, needed) ? undefined : problem('ROLE_TOO_LOW', `This needs the role ${needed}.`);
  }

  members(organizationId: string): Promise<Member[]> {
    return listMembers(this.#database.query, organizationId);
  }

  /** The organizations of an account with its role in each. */
  async memberships(accountId: string): Promise<readonly Membership[]> {
    return (await this.#memberships.get(accountId)) ?? [];
  }

  async adjustRateLimit(organization: Organization, level: RateLimitLevelName): Promise<void> {
    await setRateLimitLevel(this.#database.query, organization.id, level);
    await this.#database.announce(organizationChannel, organization.name.toLowerCase());
  }

  async setMemberRole(
    organizationId: string,
    actorId: string | undefined,
    username: string,
    role: Role,
  ): Promise<Problem | undefined> {
    const changed = await this.#database.transaction(async (transaction) => {
      const refused = await this.requireRole(transaction, organizationId, actorId, 'ADMIN');
      if (refused !== undefined) return refused;
      const member = await findMember(transaction, organizationId, username);
      if (member === undefined) return problem('MEMBER_NOT_FOUND');
      const demoted = member.role === 'ADMIN' && role !== 'ADMIN';
      if (demoted && (await countAdmins(transaction, organizationId)) === 1) return problem('LAST_ADMIN');
      await setRole(transaction, organizationId, member.accountId, role);
      return member;
    });
    if (!('accountId' in changed)) return changed;
    await this.announceMember(organizationId, changed.accountId);
    return undefined;
  }

  /** Removes a member and revokes the keys that the member made here. */
  async removeMember(
    organizationId: string,
    actorId: string | undefined,
    username: string,
  ): Promise<Problem | undefined> {
    const removed = await this.#database.transaction(async (transaction) => {
      const refused = await this.requireRole(transaction, organizationId, actorId, 'ADMIN');
      if (refused !== undefined) return refused;
      const member = await findMember(transaction, organizationId, username);
      if (member === undefined) return problem('MEMBER_NOT_FOUND');
      if (member.role === 'ADMIN' && (await countAdmins(transaction, organizationId)) === 1) {
        return problem('LAST_ADMIN');
      }
      await deleteMember(transaction, organizationId, member.accountId);
      const revoked = await this.#keys.revokeAllOf(transaction, organizationId, member.accountId);
      return { accountId: member.accountId, revoked };
    });
    if (!('accountId' in removed)) return removed;
    await this.announceMember(organizationId, removed.accountId);
    await this.#keys.revoked(removed.revoked);
    return undefined;
  }

  /** Tells every node that somebody joined, left or has another role. */
  async announceMember(organizationId: string, accountId: string): Promise<void> {
    await this.#database.announce(memberChannel, `${organizationId}/${accountId}`);
  }
}
