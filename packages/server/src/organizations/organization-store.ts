import { type RateLimitLevelName, type Role, rateLimitLevels, roles } from '@millrace/contract';
import type { Kysely } from 'kysely';
import type { Schema } from '../database/schema.ts';
import { comparable } from '../platform/names.ts';

export type Queries = Kysely<Schema>;

export interface Organization {
  readonly id: string;
  readonly name: string;
  readonly rateLimitLevel: RateLimitLevelName;
}

export interface Member {
  readonly accountId: string;
  readonly username: string;
  readonly email: string;
  readonly role: Role;
  readonly joinedAt: number;
}

export interface Membership {
  readonly organizationId: string;
  readonly organizationName: string;
  readonly role: Role;
}

export async function insertOrganization(
  queries: Queries,
  organization: { id: string; name: string; createdBy: string; now: number },
): Promise<void> {
  await queries
    .insertInto('organizations')
    .values({
      id: organization.id,
      name: organization.name,
      name_lower: organization.name.toLowerCase(),
      rate_limit_level: 'DEFAULT',
      created_at: organization.now,
      created_by: organization.createdBy,
    })
    .execute();
}

export async function findOrganization(queries: Queries, name: string): Promise<Organization | undefined> {
  const row = await queries
    .selectFrom('organizations')
    .select(['id', 'name', 'rate_limit_level'])
    .where('name_lower', '=', name.toLowerCase())
    .executeTakeFirst();
  return row && { id: row.id, name: row.name, rateLimitLevel: levelOf(row.rate_limit_level) };
}

export async function setRateLimitLevel(
  queries: Queries,
  id: string,
  level: RateLimitLevelName,
): Promise<void> {
  await queries.updateTable('organizations').set({ rate_limit_level: level }).where('id', '=', id).execute();
}

/** Adds a member. False when the account is one already. */
export async function insertMember(
  queries: Queries,
  member: { organizationId: string; accountId: string; role: Role; now: number },
): Promise<boolean> {
  const result = await queries
    .insertInto('members')
    .values({
      organization_id: member.organizationId,
      account_id: member.accountId,
      role: member.role,
      joined_at: member.now,
    })
    .onConflict((conflict) => conflict.columns(['organization_id', 'account_id']).doNothing())
    .executeTakeFirst();
  return (result.numInsertedOrUpdatedRows ?? 0n) > 0n;
}

export async function findRole(
  queries: Queries,
  organizationId: string,
  accountId: string,
): Promise<Role | undefined> {
  const row = await queries
    .selectFrom('members')
    .select('role')
    .where('organization_id', '=', organizationId)
    .where('account_id', '=', accountId)
    .executeTakeFirst();
  return row && roleOf(row.role);
}

export async function listMembers(queries: Queries, organizationId: string): Promise<Member[]> {
  const rows = await selectMembers(queries, organizationId).orderBy('accounts.username_lower').execute();
  return rows.map(memberOf);
}

export async function findMember(
  queries: Queries,
  organizationId: string,
  username: string,
): Promise<Member | undefined> {
  const row = await selectMembers(queries, organizationId)
    .where('accounts.username_lower', '=', comparable(username))
    .executeTakeFirst();
  return row && memberOf(row);
}

export async function countAdmins(queries: Queries, organizationId: string): Promise<number> {
  const row = await queries
    .selectFrom('members')
    .select((select) => select.fn.countAll<number>().as('count'))
    .where('organization_id', '=', organizationId)
    .where('role', '=', 'ADMIN')
    .executeTakeFirst();
  return Number(row?.count ?? 0);
}

export async function setRole(
  queries: Queries,
  organizationId: string,
  accountId: string,
  role: Role,
): Promise<void> {
  await queries
    .updateTable('members')
    .set({ role })
    .where('organization_id', '=', organizationId)
    .where('account_id', '=', accountId)
    .execute();
}

export async function deleteMember(
  queries: Queries,
  organizationId: string,
  accountId: string,
): Promise<void> {
  await queries
    .deleteFrom('members')
    .where('organization_id', '=', organizationId)
    .where('account_id', '=', accountId)
    .execute();
}

/** The organizations of an account with its role in each, by name. */
export async function listMemberships(queries: Queries, accountId: string): Promise<Membership[]> {
  const rows = await queries
    .selectFrom('members')
    .innerJoin('organizations', 'organizations.id', 'members.organization_id')
    .select(['organizations.id as id', 'organizations.name as name', 'members.role as role'])
    .where('members.account_id', '=', accountId)
    .orderBy('organizations.name_lower')
    .execute();
  return rows.map((row) => ({ organizationId: row.id, organizationName: row.name, role: roleOf(row.role) }));
}

function selectMembers(queries: Queries, organizationId: string) {
  return queries
    .selectFrom('members')
    .innerJoin('accounts', 'accounts.id', 'members.account_id')
    .select([
      'members.account_id as account_id',
      'members.role as role',
      'members.joined_at as joined_at',
      'accounts.username as username',
      'accounts.email as email',
    ])
    .where('members.organization_id', '=', organizationId);
}

function memberOf(row: {
  account_id: string;
  role: string;
  joined_at: number;
  username: string;
  email: string;
}): Member {
  return {
    accountId: row.account_id,
    username: row.username,
    email: row.email,
    role: roleOf(row.role),
    joinedAt: row.joined_at,
  };
}

/** An unknown role in the database counts as the lowest. */
function roleOf(text: string): Role {
  return roles.find((role) => role === text) ?? 'VIEWER';
}

function levelOf(text: string): RateLimitLevelName {
  return rateLimitLevels.find((level) => level === text) ?? 'DEFAULT';
}
