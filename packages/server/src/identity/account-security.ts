import { type Problem, problem } from '../platform/problem.ts';
import {
  type Account,
  disableTotp,
  enableTotp,
  findAccount,
  findByLogin,
  rememberAddress,
  setPassword,
  setPendingTotpSecret,
} from './account-store.ts';
import type { IdentityParts, Visitor } from './identity.ts';
import { passwordChangedLetter, passwordResetLetter } from './letters.ts';
import { busy, passwordWeakness } from './passwords.ts';
import { guessOf } from './sign-in.ts';

/** The answer to a forgotten password takes at least this long, so that its time does not tell whether the account exists. */
const forgotMilliseconds = 60;

/** Mails a code to the owner of the account, if there is one. */
export async function forgetPassword(
  parts: IdentityParts,
  usernameOrEmail: string,
  visitor: Visitor,
): Promise<Problem | undefined> {
  const floor = new Promise((resolve) => setTimeout(resolve, forgotMilliseconds));
  const refused = await parts.attempts.payRequest(visitor.address);
  if (refused !== undefined) return refused;
  const account = await findByLogin(parts.database.query, usernameOrEmail);
  if (account !== undefined && account.confirmed_at !== null) {
    if (await parts.attempts.mayMail(account.email, 'password-reset')) {
      const code = await parts.codes.issue(parts.database.query, account.id, 'password-reset');
      await parts.mailer.send(passwordResetLetter(account.email, account.username, code));
    }
  }
  await floor;
  return undefined;
}

/** Sets a new password with the mailed code and ends every session. */
export async function resetPassword(
  parts: IdentityParts,
  form: { readonly usernameOrEmail: string; readonly code: string; readonly newPassword: string },
  visitor: Visitor,
): Promise<Problem | undefined> {
  const account = await findByLogin(parts.database.query, form.usernameOrEmail);
  const guess = await guessOf(parts, 'mailed-code', account, form.usernameOrEmail, visitor);
  // The code is worth one success, so a password that cannot be taken is refused before it is spent. It is
  // compared with what was typed only: the account's own names are nobody else's business.
  const typed = { username: form.usernameOrEmail, email: form.usernameOrEmail };
  const weakness = await passwordWeakness(form.newPassword, typed);
  if (weakness !== undefined) return problem('PASSWORD_WEAK', weakness);
  const refused = await parts.attempts.pay(guess);
  if (refused !== undefined) return refused;
  const passwordHash = await parts.passwords.hash(form.newPassword);
  if (passwordHash === undefined) return busy();
  if (account === undefined) return problem('CODE_WRONG');
  const check = await parts.codes.check(parts.database.query, account.id, 'password-reset', form.code);
  if (check !== 'right') return problem('CODE_WRONG');
  await parts.attempts.refund(guess);
  await replacePassword(parts, account, passwordHash);
  await rememberAddress(parts.database.query, account.id, visitor.address, parts.clock.now());
  return undefined;
}

/** Changes the password of somebody signed in and ends every other session. */
export async function changePassword(
  parts: IdentityParts,
  caller: { readonly accountId: string; readonly sessionId: string },
  form: { readonly currentPassword: string; readonly newPassword: string },
  visitor: Visitor,
): Promise<Problem | undefined> {
  const account = await findAccount(parts.database.query, caller.accountId);
  if (account === undefined) return problem('CREDENTIAL_INVALID');
  const wrong = await provePassword(parts, account, form.currentPassword, visitor);
  if (wrong !== undefined) return wrong;
  const weakness = await passwordWeakness(form.newPassword, account);
  if (weakness !== undefined) return problem('PASSWORD_WEAK', weakness);
  if (form.newPassword === form.currentPassword) {
    return problem('PASSWORD_WEAK', 'The new password must differ from the current one.');
  }
  const passwordHash = await parts.passwords.hash(form.newPassword);
  if (passwordHash === undefined) return busy();
  await replacePassword(parts, account, passwordHash, caller.sessionId);
  return undefined;
}

export async function enrolTotp(
  parts: IdentityParts,
  accountId: string,
): Promise<{ secret: string; otpauthUri: string } | Problem> {
  const account = await findAccount(parts.database.query, accountId);
  if (account === undefined) return problem('CREDENTIAL_INVALID');
  if (account.totp_secret !== null) return problem('TOTP_ALREADY_ENABLED');
  const enrolment = parts.totp.enrolment(account.username);
  await setPendingTotpSecret(parts.database.query, account.id, enrolment.secret);
  return enrolment;
}

/** Enables one-time codes once a code of the new device has been shown. */
export async function confirmTotp(
  parts: IdentityParts,
  accountId: string,
  code: string,
  visitor: Visitor,
): Promise<{ recoveryCodes: string[] } | Problem> {
  const account = await findAccount(parts.database.query, accountId);
  if (account === undefined) return problem('CREDENTIAL_INVALID');
  if (account.totp_secret !== null) return problem('TOTP_ALREADY_ENABLED');
  const secret = account.totp_pending_secret;
  if (secret === null) return problem('TOTP_NOT_ENROLLED');
  const guess = await guessOf(parts, 'one-time-code', account, account.username, visitor);
  const refused = await parts.attempts.pay(guess);
  if (refused !== undefined) return refused;
  const step = parts.totp.step(secret, code.replace(/\s/g, ''));
  if (step === undefined) return problem('CODE_WRONG');
  await parts.attempts.refund(guess);
  const recoveryCodes = parts.totp.recoveryCodes();
  const enabled = await parts.database.transaction(async (transaction) => {
    const current = await findAccount(transaction, accountId);
    if (current?.totp_pending_secret !== secret) return false;
    await enableTotp(transaction, accountId, {
      secret,
      step,
      now: parts.clock.now(),
      recoveryCodeHashes: recoveryCodes.map((each) => parts.totp.hashRecoveryCode(accountId, each)),
    });
    return true;
  });
  if (!enabled) return problem('TOTP_ALREADY_ENABLED');
  await parts.profiles.changed(accountId);
  return { recoveryCodes };
}

export async function removeTotp(
  parts: IdentityParts,
  accountId: string,
  form: { readonly password: string; readonly code: string },
  visitor: Visitor,
): Promise<Problem | undefined> {
  const account = await findAccount(parts.database.query, accountId);
  if (account === undefined) return problem('CREDENTIAL_INVALID');
  if (account.totp_secret === null) return problem('TOTP_NOT_ENROLLED');
  const guess = await guessOf(parts, 'one-time-code', account, account.username, visitor);
  const wrong = await provePassword(parts, account, form.password, visitor);
  if (wrong !== undefined) return wrong;
  const refused = await parts.attempts.pay(guess);
  if (refused !== undefined) return refused;
  if (!(await parts.totp.redeem(parts.database.query, account, form.code))) {
    return problem('PASSWORD_WRONG', 'The one-time code is wrong.');
  }
  await parts.attempts.refund(guess);
  await parts.database.transaction((transaction) => disableTotp(transaction, accountId));
  await parts.profiles.changed(accountId);
  return undefined;
}

async function provePassword(
  parts: IdentityParts,
  account: Account,
  password: string,
  visitor: Visitor,
): Promise<Problem | undefined> {
  const guess = await guessOf(parts, 'password', account, account.username, visitor);
  const refused = await parts.attempts.pay(guess);
  if (refused !== undefined) return refused;
  const verification = await parts.passwords.verify(account.password_hash, password);
  if (verification === 'busy') return busy();
  if (verification === 'wrong') return problem('PASSWORD_WRONG', 'The current password is wrong.');
  await parts.attempts.refund(guess);
  return undefined;
}

async function replacePassword(
  parts: IdentityParts,
  account: Account,
  passwordHash: string,
  exceptSessionId?: string,
): Promise<void> {
  const ended = await parts.database.transaction(async (transaction) => {
    await setPassword(transaction, account.id, passwordHash);
    return parts.sessions.endAll(transaction, account.id, exceptSessionId);
  });
  await parts.sessions.ended(ended);
  await parts.mailer.send(passwordChangedLetter(account.email, account.username));
}
