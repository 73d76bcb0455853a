import { isUniqueViolation } from '../database/errors.ts';
import { comparable } from '../platform/names.ts';
import { type Problem, problem } from '../platform/problem.ts';
import { randomId } from '../platform/random.ts';
import {
  type Account,
  confirmAccount,
  deleteUnconfirmedAccount,
  findAccount,
  findByConfirmedEmail,
  findByUsername,
  insertAccount,
} from './account-store.ts';
import type { IdentityParts, Visitor } from './identity.ts';
import { alreadySignedUpLetter, confirmationLetter } from './letters.ts';
import { busy, passwordWeakness } from './passwords.ts';

/** How long an account that nobody confirms keeps its username. */
export const unconfirmedMilliseconds = 24 * 3_600_000;

export interface SignUpForm {
  readonly username: string;
  readonly email: string;
  readonly password: string;
  readonly tosAgreed: boolean;
  readonly marketingAgreed: boolean;
}

export interface SignUpAnswer {
  confirmed?: boolean;
  errorMsg?: string;
  codeRequired?: { username: string };
}

/**
 * Signing up. An account is made at once, without a claim on its email: only the mailed code proves who
 * owns the mailbox. A sign-up with the email of somebody else's account therefore looks exactly like any
 * other, except that the owner is told instead of being sent a code.
 */
export async function signUp(
  parts: IdentityParts,
  form: SignUpForm,
  visitor: Visitor,
): Promise<SignUpAnswer | Problem> {
  if (parts.signUp === 'invite') {
    return { errorMsg: 'Sign-up is by invitation only. Ask a member of your organization to invite you.' };
  }
  if (!form.tosAgreed) return { errorMsg: 'The terms of service must be agreed to.' };
  const weakness = await passwordWeakness(form.password, form);
  if (weakness !== undefined) return { errorMsg: weakness };
  const refused = await parts.attempts.payRequest(visitor.address);
  if (refused !== undefined) return refused;

  const present = await findByUsername(parts.database.query, form.username);
  if (present !== undefined && !isStale(parts, present)) return signUpAgain(parts, present, form, visitor);

  const passwordHash = await parts.passwords.hash(form.password);
  if (passwordHash === undefined) return busy();
  const id = randomId(parts.random);
  try {
    await parts.database.transaction(async (transaction) => {
      if (present !== undefined) await deleteUnconfirmedAccount(transaction, present.id);
      await insertAccount(transaction, {
        id,
        username: form.username,
        email: form.email,
        passwordHash,
        confirmedAt: null,
        mustChangePassword: false,
        temporaryPasswordExpiresAt: null,
        marketingAgreed: form.marketingAgreed,
        createdAt: parts.clock.now(),
      });
    });
  } catch (error) {
    if (isUniqueViolation(error)) return taken;
    throw error;
  }
  await mailConfirmation(parts, { id, username: form.username, email: form.email });
  return { codeRequired: { username: form.username } };
}

const taken: SignUpAnswer = { errorMsg: 'This username is taken. Choose another.' };

function isStale(parts: IdentityParts, account: Account): boolean {
  return account.confirmed_at === null && account.created_at < parts.clock.now() - unconfirmedMilliseconds;
}

/** Somebody who signs up twice, having lost the first answer or the code, is sent another code. */
async function signUpAgain(
  parts: IdentityParts,
  present: Account,
  form: SignUpForm,
  visitor: Visitor,
): Promise<SignUpAnswer | Problem> {
  const same = present.confirmed_at === null && present.email_lower === comparable(form.email);
  if (!same) return taken;
  const guess = {
    secret: 'password',
    login: present.username_lower,
    account: present.id,
    address: visitor.address,
    known: false,
  } as const;
  const refused = await parts.attempts.pay(guess);
  if (refused !== undefined) return refused;
  const verification = await parts.passwords.verify(present.password_hash, form.password);
  if (verification === 'busy') return busy();
  if (verification === 'wrong') return taken;
  await parts.attempts.refund(guess);
  await mailConfirmation(parts, present);
  return { codeRequired: { username: present.username } };
}

/** Makes a code and mails it; the owner of an email that has an account is told of the attempt instead. */
export async function mailConfirmation(
  parts: IdentityParts,
  account: Pick<Account, 'id' | 'username' | 'email'>,
): Promise<boolean> {
  // Counted for the mailbox and not for the account: whoever makes many accounts has one mailbox to flood.
  if (!(await parts.attempts.mayMail(account.email, 'sign-up'))) return false;
  const code = await parts.codes.issue(parts.database.query, account.id, 'sign-up');
  const owner = await findByConfirmedEmail(parts.database.query, account.email);
  if (owner === undefined) {
    await parts.mailer.send(confirmationLetter(account.email, account.username, code));
  } else {
    await parts.mailer.send(alreadySignedUpLetter(owner.email, owner.username));
  }
  return true;
}

export async function confirmSignUp(
  parts: IdentityParts,
  form: { readonly username: string; readonly code: string },
  visitor: Visitor,
): Promise<SignUpAnswer | Problem> {
  const account = await findByUsername(parts.database.query, form.username);
  const guess = {
    secret: 'mailed-code',
    login: comparable(form.username),
    // What is guessed is the way into a mailbox, of which many accounts may claim to be the owner.
    account: account?.email_lower ?? comparable(form.username),
    address: visitor.address,
    known: false,
  } as const;
  const refused = await parts.attempts.pay(guess);
  if (refused !== undefined) return refused;
  if (account === undefined) return wrongCode;
  if (account.confirmed_at !== null) return { errorMsg: 'This account is confirmed already. Sign in.' };

  const check = await parts.codes.check(parts.database.query, account.id, 'sign-up', form.code);
  if (check === 'wrong') return wrongCode;
  if (check === 'spent') {
    return (await mailConfirmation(parts, account))
      ? newCode
      : problem('TOO_MANY_ATTEMPTS', undefined, { retryAfterSeconds: 300 });
  }
  const confirmed = await parts.database.transaction(async (transaction) => {
    const current = await findAccount(transaction, account.id);
    const owner = await findByConfirmedEmail(transaction, account.email);
    if (current === undefined || owner !== undefined) return false;
    await confirmAccount(transaction, current, parts.clock.now());
    return true;
  });
  if (!confirmed) return wrongCode;
  await parts.attempts.refund(guess);
  return { confirmed: true };
}

const wrongCode: SignUpAnswer = { errorMsg: 'The code is wrong. Check it and try again.' };
const newCode: SignUpAnswer = {
  errorMsg: 'The code is wrong or has expired, and a new one was mailed. Use the new one.',
};
