import type { Kysely } from 'kysely';
import type { AccountRow, Schema } from '../database/schema.ts';
import { comparable } from '../platform/names.ts';

/** Queries on accounts. Each takes the database or an open transaction. */
export type Queries = Kysely<Schema>;

export type Account = AccountRow;

export interface NewAccount {
  readonly id: string;
  readonly username: string;
  readonly email: string;
  readonly passwordHash: string;
  readonly confirmedAt: number | null;
  readonly mustChangePassword: boolean;
  readonly temporaryPasswordExpiresAt: number | null;
  readonly marketingAgreed: boolean;
  readonly createdAt: number;
}

export async function insertAccount(queries: Queries, account: NewAccount): Promise<void> {
  await queries
    .insertInto('accounts')
    .values({
      id: account.id,
      username: account.username,
      username_lower: comparable(account.username),
      email: account.email,
      email_lower: comparable(account.email),
      password_hash: account.passwordHash,
      confirmed_at: account.confirmedAt,
      must_change_password: account.mustChangePassword ? 1 : 0,
      temporary_password_expires_at: account.temporaryPasswordExpiresAt,
      tos_agreed_at: account.createdAt,
      marketing_agreed: account.marketingAgreed ? 1 : 0,
      totp_secret: null,
      totp_enabled_at: null,
      totp_last_step: null,
      totp_pending_secret: null,
      created_at: account.createdAt,
    })
    .execute();
}

export function findAccount(queries: Queries, id: string): Promise<Account | undefined> {
  return queries.selectFrom('accounts').selectAll().where('id', '=', id).executeTakeFirst();
}

export function findByUsername(queries: Queries, username: string): Promise<Account | undefined> {
  return queries
    .selectFrom('accounts')
    .selectAll()
    .where('username_lower', '=', comparable(username))
    .executeTakeFirst();
}

/** The one account that has proved to own this email. */
export function findByConfirmedEmail(queries: Queries, email: string): Promise<Account | undefined> {
  return queries
    .selectFrom('accounts')
    .selectAll()
    .where('email_lower', '=', comparable(email))
    .where('confirmed_at', 'is not', null)
    .executeTakeFirst();
}

/**
 * The account that a person means. A proved email goes first, so that nobody can catch another person's
 * sign-in by taking that person's email as a username.
 */
export async function findByLogin(queries: Queries, login: string): Promise<Account | undefined> {
  const [byEmail, byUsername] = await Promise.all([
    findByConfirmedEmail(queries, login),
    findByUsername(queries, login),
  ]);
  return byEmail ?? byUsername;
}

/** Confirms an account; others that only claimed the same email lose their claim. */
export async function confirmAccount(queries: Queries, account: Account, now: number): Promise<void> {
  await queries
    .deleteFrom('accounts')
    .where('email_lower', '=', account.email_lower)
    .where('confirmed_at', 'is', null)
    .where('id', '!=', account.id)
    .execute();
  await queries.updateTable('accounts').set({ confirmed_at: now }).where('id', '=', account.id).execute();
}

/** Deletes an account that nobody has confirmed; one that was confirmed meanwhile stays. */
export async function deleteUnconfirmedAccount(queries: Queries, id: string): Promise<void> {
  await queries.deleteFrom('accounts').where('id', '=', id).where('confirmed_at', 'is', null).execute();
}

export async function deleteUnconfirmedAccounts(queries: Queries, before: number): Promise<void> {
  await queries
    .deleteFrom('accounts')
    .where('confirmed_at', 'is', null)
    .where('created_at', '<', before)
    .execute();
}

/** Sets a password that the person chose. What was begun with the one before it ends. */
export async function setPassword(queries: Queries, id: string, passwordHash: string): Promise<void> {
  await queries.deleteFrom('challenges').where('account_id', '=', id).execute();
  await queries
    .deleteFrom('mailed_codes')
    .where('account_id', '=', id)
    .where('purpose', '=', 'password-reset')
    .execute();
  await queries
    .updateTable('accounts')
    .set({ password_hash: passwordHash, must_change_password: 0, temporary_password_expires_at: null })
    .where('id', '=', id)
    .execute();
}

/** Replaces the temporary password of somebody who never signed in with the one before. */
export async function setTemporaryPassword(
  queries: Queries,
  id: string,
  passwordHash: string,
  expiresAt: number,
): Promise<void> {
  await queries
    .updateTable('accounts')
    .set({ password_hash: passwordHash, temporary_password_expires_at: expiresAt })
    .where('id', '=', id)
    .where('must_change_password', '=', 1)
    .execute();
}

export async function setPendingTotpSecret(queries: Queries, id: string, secret: string): Promise<void> {
  await queries.updateTable('accounts').set({ totp_pending_secret: secret }).where('id', '=', id).execute();
}

export async function enableTotp(
  queries: Queries,
  id: string,
  enrolment: { secret: string; step: number; now: number; recoveryCodeHashes: readonly string[] },
): Promise<void> {
  await queries
    .updateTable('accounts')
    .set({
      totp_secret: enrolment.secret,
      totp_pending_secret: null,
      totp_enabled_at: enrolment.now,
      totp_last_step: enrolment.step,
    })
    .where('id', '=', id)
    .execute();
  await queries.deleteFrom('recovery_codes').where('account_id', '=', id).execute();
  await queries
    .insertInto('recovery_codes')
    .values(enrolment.recoveryCodeHashes.map((hash) => ({ account_id: id, code_hash: hash })))
    .execute();
}

export async function disableTotp(queries: Queries, id: string): Promise<void> {
  await queries
    .updateTable('accounts')
    .set({ totp_secret: null, totp_pending_secret: null, totp_enabled_at: null, totp_last_step: null })
    .where('id', '=', id)
    .execute();
  await queries.deleteFrom('recovery_codes').where('account_id', '=', id).execute();
}

/** Uses up the code of a time step. False when it, or a later one, was used before. */
export async function useTotpStep(queries: Queries, id: string, step: number): Promise<boolean> {
  const result = await queries
    .updateTable('accounts')
    .set({ totp_last_step: step })
    .where('id', '=', id)
    .where((where) => where.or([where('totp_last_step', 'is', null), where('totp_last_step', '<', step)]))
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** Uses up a recovery code. False when there is no such one, or no longer. */
export async function useRecoveryCode(queries: Queries, id: string, codeHash: string): Promise<boolean> {
  const result = await queries
    .deleteFrom('recovery_codes')
    .where('account_id', '=', id)
    .where('code_hash', '=', codeHash)
    .executeTakeFirst();
  return result.numDeletedRows > 0n;
}

export async function isKnownAddress(queries: Queries, id: string, address: string): Promise<boolean> {
  const row = await queries
    .selectFrom('known_addresses')
    .select('account_id')
    .where('account_id', '=', id)
    .where('address', '=', address)
    .executeTakeFirst();
  return row !== undefined;
}

export async function rememberAddress(
  queries: Queries,
  id: string,
  address: string,
  now: number,
): Promise<void> {
  // A client that is gone has no address, and nobody may be known by none.
  if (address === '') return;
  await queries
    .insertInto('known_addresses')
    .values({ account_id: id, address, last_success_at: now })
    .onConflict((conflict) =>
      conflict.columns(['account_id', 'address']).doUpdateSet({ last_success_at: now }),
    )
    .execute();
}

export async function forgetAddresses(queries: Queries, before: number): Promise<void> {
  await queries.deleteFrom('known_addresses').where('last_success_at', '<', before).execute();
}
