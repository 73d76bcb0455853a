import type { ApiKeyRow } from '../database/schema.ts';
import type { Queries } from './account-store.ts';

export interface ApiKeyRecord {
  readonly id: string;
  readonly organizationId: string;
  readonly secretHash: string;
  readonly description: string;
  readonly ownerType: 'USER' | 'TASK';
  /** Undefined for the key of a task. */
  readonly ownerAccountId: string | undefined;
  readonly ownerUsername: string;
  readonly revocable: boolean;
  readonly queueWhitelist: readonly string[] | undefined;
  readonly expiresAt: number | undefined;
  readonly createdAt: number;
  readonly lastUsedAt: number | undefined;
}

export async function insertApiKey(queries: Queries, key: ApiKeyRecord): Promise<void> {
  await queries
    .insertInto('api_keys')
    .values({
      id: key.id,
      organization_id: key.organizationId,
      secret_hash: key.secretHash,
      description: key.description,
      owner_type: key.ownerType,
      owner_account_id: key.ownerAccountId ?? null,
      owner_username: key.ownerUsername,
      revocable: key.revocable ? 1 : 0,
      queue_whitelist: key.queueWhitelist === undefined ? null : JSON.stringify(key.queueWhitelist),
      expires_at: key.expiresAt ?? null,
      created_at: key.createdAt,
      last_used_at: key.lastUsedAt ?? null,
      revoked_at: null,
    })
    .execute();
}

/** The key with this secret, unless it was revoked. */
export async function findApiKeyBySecret(
  queries: Queries,
  secretHash: string,
): Promise<ApiKeyRecord | undefined> {
  const row = await queries
    .selectFrom('api_keys')
    .selectAll()
    .where('secret_hash', '=', secretHash)
    .where('revoked_at', 'is', null)
    .executeTakeFirst();
  return row && recordOf(row);
}

export async function findApiKey(
  queries: Queries,
  organizationId: string,
  id: string,
): Promise<ApiKeyRecord | undefined> {
  const row = await queries
    .selectFrom('api_keys')
    .selectAll()
    .where('id', '=', id)
    .where('organization_id', '=', organizationId)
    .where('revoked_at', 'is', null)
    .executeTakeFirst();
  return row && recordOf(row);
}

/** The keys of an organization, or those of one account in it, newest first. */
export async function listApiKeys(
  queries: Queries,
  organizationId: string,
  ownerAccountId?: string,
): Promise<ApiKeyRecord[]> {
  let query = queries
    .selectFrom('api_keys')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .where('revoked_at', 'is', null);
  if (ownerAccountId !== undefined) query = query.where('owner_account_id', '=', ownerAccountId);
  const rows = await query.orderBy('created_at', 'desc').orderBy('id').execute();
  return rows.map(recordOf);
}

/** How many keys people have made; those of tasks come and go with their versions. */
export async function countApiKeys(queries: Queries, organizationId: string): Promise<number> {
  const row = await queries
    .selectFrom('api_keys')
    .select((select) => select.fn.countAll<number>().as('count'))
    .where('organization_id', '=', organizationId)
    .where('owner_type', '!=', 'TASK')
    .where('revoked_at', 'is', null)
    .executeTakeFirst();
  return Number(row?.count ?? 0);
}

export async function revokeApiKey(queries: Queries, id: string, now: number): Promise<void> {
  await queries.updateTable('api_keys').set({ revoked_at: now }).where('id', '=', id).execute();
}

/** Revokes the keys that a person made in an organization, and answers the digests of their secrets. */
export async function revokeApiKeysOf(
  queries: Queries,
  organizationId: string,
  accountId: string,
  now: number,
): Promise<string[]> {
  const rows = await queries
    .updateTable('api_keys')
    .set({ revoked_at: now })
    .where('organization_id', '=', organizationId)
    .where('owner_account_id', '=', accountId)
    .where('revoked_at', 'is', null)
    .returning('secret_hash')
    .execute();
  return rows.map((row) => row.secret_hash);
}

/** Revokes keys of tasks, and answers the digests of their secrets. */
export async function revokeTaskKeys(
  queries: Queries,
  organizationId: string,
  ids: readonly string[],
  now: number,
): Promise<string[]> {
  if (ids.length === 0) return [];
  const rows = await queries
    .updateTable('api_keys')
    .set({ revoked_at: now })
    .where('organization_id', '=', organizationId)
    .where('owner_type', '=', 'TASK')
    .where('id', 'in', ids)
    .where('revoked_at', 'is', null)
    .returning('secret_hash')
    .execute();
  return rows.map((row) => row.secret_hash);
}

export async function touchApiKey(queries: Queries, id: string, usedAt: number): Promise<void> {
  await queries
    .updateTable('api_keys')
    .set({ last_used_at: usedAt })
    .where('id', '=', id)
    .where((where) => where.or([where('last_used_at', 'is', null), where('last_used_at', '<', usedAt)]))
    .execute();
}

export async function deleteRevokedApiKeys(queries: Queries, before: number): Promise<void> {
  await queries.deleteFrom('api_keys').where('revoked_at', '<', before).execute();
}

function recordOf(row: ApiKeyRow): ApiKeyRecord {
  return {
    id: row.id,
    organizationId: row.organization_id,
    secretHash: row.secret_hash,
    description: row.description,
    ownerType: row.owner_type === 'TASK' ? 'TASK' : 'USER',
    ownerAccountId: row.owner_account_id ?? undefined,
    ownerUsername: row.owner_username,
    revocable: row.revocable === 1,
    queueWhitelist: row.queue_whitelist === null ? undefined : parseNames(row.queue_whitelist),
    expiresAt: row.expires_at ?? undefined,
    createdAt: row.created_at,
    lastUsedAt: row.last_used_at ?? undefined,
  };
}

function parseNames(text: string): string[] {
  const value: unknown = JSON.parse(text);
  return Array.isArray(value) ? value.map(String) : [];
}
