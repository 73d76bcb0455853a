import { comparable } from '../platform/names.ts';
import type { Problem } from '../platform/problem.ts';
import {
  type Account,
  findAccount,
  findByLogin,
  isKnownAddress,
  rememberAddress,
  setPassword,
} from './account-store.ts';
import type { Guess, Secret } from './attempts.ts';
import type { IdentityParts, Visitor } from './identity.ts';
import { busy, passwordWeakness } from './passwords.ts';
import type { SignInResult } from './sessions.ts';
import { mailConfirmation } from './sign-up.ts';

export interface SignInAnswer {
  result?: SignInResult;
  errorMsg?: string;
  challengeTotpCode?: { session: string; username: string };
  challengePasswordChange?: { session: string; username: string };
  codeRequired?: { username: string };
}

/**
 * Signing in, step by step:
 *
 *     password ──> unconfirmed? codeRequired
 *              ──> one-time codes enabled? challengeTotpCode ──> code
 *              ──> temporary password? challengePasswordChange ──> new password
 *              ──> result
 *
 * Known and unknown accounts take the same path and the same work, up to the comparison that decides.
 */
export async function signIn(
  parts: IdentityParts,
  form: { readonly usernameOrEmail: string; readonly password: string },
  visitor: Visitor,
): Promise<SignInAnswer | Problem> {
  const account = await findByLogin(parts.database.query, form.usernameOrEmail);
  const guess = await guessOf(parts, 'password', account, form.usernameOrEmail, visitor);
  const refused = await parts.attempts.pay(guess);
  if (refused !== undefined) return refused;
  const verification = await parts.passwords.verify(account?.password_hash, form.password);
  if (verification === 'busy') return busy();
  if (account === undefined || verification === 'wrong') {
    return { errorMsg: 'The username or the password is wrong.' };
  }
  await parts.attempts.refund(guess);

  if (account.confirmed_at === null) {
    await mailConfirmation(parts, account);
    return { codeRequired: { username: account.username } };
  }
  const expires = account.temporary_password_expires_at;
  if (expires !== null && expires <= parts.clock.now()) {
    return { errorMsg: 'The temporary password has expired. Reset your password to get a new one.' };
  }
  if (account.totp_secret !== null) {
    const session = await parts.challenges.open(parts.database.query, account.id, 'totp');
    return { challengeTotpCode: { session, username: account.username } };
  }
  return proceed(parts, account, visitor);
}

export async function answerTotpChallenge(
  parts: IdentityParts,
  form: { readonly username: string; readonly session: string; readonly code: string },
  visitor: Visitor,
): Promise<SignInAnswer | Problem> {
  const attempt = await parts.challenges.attempt(parts.database.query, form.session, 'totp');
  const account = await challenged(parts, attempt?.accountId, form.username);
  const guess = await guessOf(parts, 'one-time-code', account, form.username, visitor);
  const refused = await parts.attempts.pay(guess);
  if (refused !== undefined) return refused;
  if (attempt === undefined || account === undefined) return expiredSession;
  if (!(await parts.totp.redeem(parts.database.query, account, form.code))) {
    return attempt.triesLeft > 0 ? { errorMsg: 'The code is wrong. Try the next one.' } : expiredSession;
  }
  if (!(await parts.challenges.complete(parts.database.query, form.session))) return expiredSession;
  await parts.attempts.refund(guess);
  return proceed(parts, account, visitor);
}

export async function answerPasswordChallenge(
  parts: IdentityParts,
  form: { readonly username: string; readonly session: string; readonly newPassword: string },
  visitor: Visitor,
): Promise<SignInAnswer | Problem> {
  const attempt = await parts.challenges.attempt(parts.database.query, form.session, 'password-change');
  const account = await challenged(parts, attempt?.accountId, form.username);
  if (attempt === undefined || account === undefined) {
    const guess = await guessOf(parts, 'one-time-code', undefined, form.username, visitor);
    return (await parts.attempts.pay(guess)) ?? expiredSession;
  }
  const unacceptable = await refuseNewPassword(parts, account, form.newPassword);
  if (unacceptable !== undefined) {
    await parts.challenges.forgive(parts.database.query, form.session);
    return unacceptable;
  }
  const passwordHash = await parts.passwords.hash(form.newPassword);
  if (passwordHash === undefined) return busy();
  const ended = await parts.database.transaction(async (transaction) => {
    if (!(await parts.challenges.complete(transaction, form.session))) return undefined;
    await setPassword(transaction, account.id, passwordHash);
    return parts.sessions.endAll(transaction, account.id);
  });
  if (ended === undefined) return expiredSession;
  await parts.sessions.ended(ended);
  return proceed(parts, { ...account, password_hash: passwordHash, must_change_password: 0 }, visitor);
}

const expiredSession: SignInAnswer = {
  errorMsg: 'This sign-in has expired. Start again with your password.',
};

async function refuseNewPassword(
  parts: IdentityParts,
  account: Account,
  newPassword: string,
): Promise<SignInAnswer | Problem | undefined> {
  const weakness = await passwordWeakness(newPassword, account);
  if (weakness !== undefined) return { errorMsg: weakness };
  const same = await parts.passwords.verify(account.password_hash, newPassword);
  if (same === 'busy') return busy();
  return same === 'right' ? { errorMsg: 'The new password must differ from the temporary one.' } : undefined;
}

/** What follows when every proof of identity has been given. */
async function proceed(parts: IdentityParts, account: Account, visitor: Visitor): Promise<SignInAnswer> {
  await rememberAddress(parts.database.query, account.id, visitor.address, parts.clock.now());
  if (account.must_change_password === 1) {
    const session = await parts.challenges.open(parts.database.query, account.id, 'password-change');
    return { challengePasswordChange: { session, username: account.username } };
  }
  const result = await parts.sessions.begin(account);
  return result === undefined ? expiredSession : { result };
}

/** The account of a challenge, if the username given with it is its own. */
async function challenged(
  parts: IdentityParts,
  accountId: string | undefined,
  username: string,
): Promise<Account | undefined> {
  const account = accountId === undefined ? undefined : await findAccount(parts.database.query, accountId);
  return account?.username_lower === comparable(username) ? account : undefined;
}

export async function guessOf(
  parts: IdentityParts,
  secret: Secret,
  account: Account | undefined,
  login: string,
  visitor: Visitor,
): Promise<Guess> {
  const typed = comparable(login);
  const subject = account?.id ?? typed;
  const known = await isKnownAddress(parts.database.query, subject, visitor.address);
  return { secret, login: typed, account: subject, address: visitor.address, known };
}
