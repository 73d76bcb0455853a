import { isUniqueViolation } from '../database/errors.ts';
import {
  type Account,
  findByConfirmedEmail,
  findByUsername,
  insertAccount,
  setTemporaryPassword,
} from '../identity/account-store.ts';
import type { IdentityParts } from '../identity/identity.ts';
import { addedLetter, invitationLetter } from '../identity/letters.ts';
import { busy } from '../identity/passwords.ts';
import { comparable } from '../platform/names.ts';
import { Problem, problem } from '../platform/problem.ts';
import { randomBase62, randomId } from '../platform/random.ts';
import { insertMember, type Organization } from './organization-store.ts';
import type { Organizations } from './organizations.ts';

const emailTaken = problem(
  'NAME_TAKEN',
  'This email belongs to an account with another username. Invite it without one.',
);

const temporaryPasswordMilliseconds = 7 * 86_400_000;

/**
 * Adds a person to an organization: an account with that email at once, a new person with an account made
 * for them. The mailed temporary password proves the mailbox, so such an account counts as confirmed.
 */
export async function invite(
  parts: IdentityParts,
  organizations: Organizations,
  organization: Organization,
  invitation: { readonly email: string; readonly username?: string | undefined },
): Promise<Problem | undefined> {
  const { email, username } = invitation;
  const present = await findByConfirmedEmail(parts.database.query, email);
  if (present !== undefined) {
    if (username !== undefined && comparable(username) !== present.username_lower) {
      return emailTaken;
    }
    return addExisting(parts, organizations, organization, present);
  }
  if (username === undefined) {
    return problem(
      'ACCOUNT_NOT_FOUND',
      'No account has this email. Give a username as well, and one is made.',
    );
  }
  return addNew(parts, organizations, organization, email, username);
}

async function addExisting(
  parts: IdentityParts,
  organizations: Organizations,
  organization: Organization,
  account: Account,
): Promise<Problem | undefined> {
  const added = await insertMember(parts.database.query, {
    organizationId: organization.id,
    accountId: account.id,
    role: 'MEMBER',
    now: parts.clock.now(),
  });
  if (added) await organizations.announceMember(organization.id, account.id);
  // Whoever was invited before and never came may have lost the mail: inviting again sends another.
  if (account.must_change_password === 1) return inviteAgain(parts, organization, account);
  if (added && (await parts.attempts.mayMail(account.email, 'invitation'))) {
    await parts.mailer.send(addedLetter(account.email, account.username, organization.name));
  }
  return undefined;
}

async function inviteAgain(
  parts: IdentityParts,
  organization: Organization,
  account: Account,
): Promise<Problem | undefined> {
  if (!(await parts.attempts.mayMail(account.email, 'invitation'))) return tooManyLetters();
  const temporary = await makeTemporaryPassword(parts);
  if (temporary instanceof Problem) return temporary;
  await setTemporaryPassword(parts.database.query, account.id, temporary.hash, temporary.expiresAt);
  const letter = invitationLetter(account.email, account.username, organization.name, temporary.password);
  await parts.mailer.send(letter);
  return undefined;
}

function tooManyLetters(): Problem {
  const detail = 'This person was sent many invitations already. Try again later.';
  return problem('TOO_MANY_ATTEMPTS', detail, { retryAfterSeconds: 300 });
}

async function makeTemporaryPassword(
  parts: IdentityParts,
): Promise<{ password: string; hash: string; expiresAt: number } | Problem> {
  const password = randomBase62(parts.random, 16);
  const hash = await parts.passwords.hash(password);
  if (hash === undefined) return busy();
  return { password, hash, expiresAt: parts.clock.now() + temporaryPasswordMilliseconds };
}

async function addNew(
  parts: IdentityParts,
  organizations: Organizations,
  organization: Organization,
  email: string,
  username: string,
): Promise<Problem | undefined> {
  const taken = problem('NAME_TAKEN', `The username ${username} is taken. Choose another.`);
  if ((await findByUsername(parts.database.query, username)) !== undefined) return taken;
  if (!(await parts.attempts.mayMail(email, 'invitation'))) return tooManyLetters();
  const temporary = await makeTemporaryPassword(parts);
  if (temporary instanceof Problem) return temporary;
  const id = randomId(parts.random);
  const now = parts.clock.now();
  try {
    await parts.database.transaction(async (transaction) => {
      await insertAccount(transaction, {
        id,
        username,
        email,
        passwordHash: temporary.hash,
        confirmedAt: now,
        mustChangePassword: true,
        temporaryPasswordExpiresAt: temporary.expiresAt,
        marketingAgreed: false,
        createdAt: now,
      });
      await insertMember(transaction, {
        organizationId: organization.id,
        accountId: id,
        role: 'MEMBER',
        now,
      });
    });
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    // Somebody else was quicker with the username or with the email.
    const owner = await findByConfirmedEmail(parts.database.query, email);
    return owner === undefined ? taken : emailTaken;
  }
  await organizations.announceMember(organization.id, id);
  await parts.mailer.send(invitationLetter(email, username, organization.name, temporary.password));
  return undefined;
}
