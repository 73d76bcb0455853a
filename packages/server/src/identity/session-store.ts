import type { Queries } from './account-store.ts';

export interface SessionRecord {
  readonly id: string;
  readonly accountId: string;
  readonly username: string;
  readonly email: string;
  readonly expiresAt: number;
}

/** Sessions an account may have at once; the oldest give way. */
const sessionsPerAccount = 100;

export async function insertSession(
  queries: Queries,
  session: { id: string; accountId: string; now: number; expiresAt: number },
): Promise<void> {
  await queries
    .insertInto('sessions')
    .values({
      id: session.id,
      account_id: session.accountId,
      created_at: session.now,
      expires_at: session.expiresAt,
      last_used_at: session.now,
    })
    .execute();
}

export async function insertRefreshToken(
  queries: Queries,
  token: { hash: string; sessionId: string; now: number },
): Promise<void> {
  await queries
    .insertInto('refresh_tokens')
    .values({ token_hash: token.hash, session_id: token.sessionId, created_at: token.now, rotated_at: null })
    .onConflict((conflict) => conflict.column('token_hash').doNothing())
    .execute();
}

export async function findSession(
  queries: Queries,
  id: string,
  now: number,
): Promise<SessionRecord | undefined> {
  const row = await queries
    .selectFrom('sessions')
    .innerJoin('accounts', 'accounts.id', 'sessions.account_id')
    .select([
      'sessions.id as id',
      'sessions.account_id as account_id',
      'sessions.expires_at as expires_at',
      'accounts.username as username',
      'accounts.email as email',
    ])
    .where('sessions.id', '=', id)
    .where('sessions.expires_at', '>', now)
    .executeTakeFirst();
  return (
    row && {
      id: row.id,
      accountId: row.account_id,
      username: row.username,
      email: row.email,
      expiresAt: row.expires_at,
    }
  );
}

export function findRefreshToken(
  queries: Queries,
  hash: string,
): Promise<{ session_id: string; rotated_at: number | null } | undefined> {
  return queries
    .selectFrom('refresh_tokens')
    .select(['session_id', 'rotated_at'])
    .where('token_hash', '=', hash)
    .executeTakeFirst();
}

/** Marks a token as rotated. False when it was already. */
export async function markRotated(queries: Queries, hash: string, now: number): Promise<boolean> {
  const result = await queries
    .updateTable('refresh_tokens')
    .set({ rotated_at: now })
    .where('token_hash', '=', hash)
    .where('rotated_at', 'is', null)
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

export async function extendSession(
  queries: Queries,
  id: string,
  now: number,
  expiresAt: number,
): Promise<void> {
  await queries
    .updateTable('sessions')
    .set({ last_used_at: now, expires_at: expiresAt })
    .where('id', '=', id)
    .execute();
}

export async function deleteSession(queries: Queries, id: string): Promise<void> {
  await queries.deleteFrom('sessions').where('id', '=', id).execute();
}

/** Ends the sessions of an account, all or all but one, and answers which they were. */
export async function deleteSessionsOf(
  queries: Queries,
  accountId: string,
  exceptSessionId?: string,
): Promise<string[]> {
  let deletion = queries.deleteFrom('sessions').where('account_id', '=', accountId);
  if (exceptSessionId !== undefined) deletion = deletion.where('id', '!=', exceptSessionId);
  const rows = await deletion.returning('id').execute();
  return rows.map((row) => row.id);
}

/** Ends the oldest sessions of an account beyond the number it may have, and answers which they were. */
export async function deleteSurplusSessions(queries: Queries, accountId: string): Promise<string[]> {
  const surplus = await queries
    .selectFrom('sessions')
    .select('id')
    .where('account_id', '=', accountId)
    .orderBy('last_used_at', 'desc')
    .orderBy('id')
    .limit(1000)
    .offset(sessionsPerAccount)
    .execute();
  const ids = surplus.map((row) => row.id);
  if (ids.length > 0) await queries.deleteFrom('sessions').where('id', 'in', ids).execute();
  return ids;
}

export async function deleteExpiredSessions(queries: Queries, now: number): Promise<void> {
  await queries.deleteFrom('sessions').where('expires_at', '<=', now).execute();
}

/** Rotated tokens are kept to recognise a replay, but not for ever. */
export async function deleteOldRefreshTokens(queries: Queries, before: number): Promise<void> {
  await queries.deleteFrom('refresh_tokens').where('rotated_at', '<', before).execute();
}
