import assert from 'node:assert/strict';
import type { Role } from '@millrace/contract';
import { call } from './client.ts';
import type { Letter, RunningService } from './service.ts';

export const password = 'correct horse battery staple';

export interface Person {
  readonly username: string;
  readonly email: string;
  readonly password: string;
  readonly accessToken: string;
  readonly refreshToken: string;
}

let count = 0;

/** A name that no other test uses. */
export function fresh(prefix: string): string {
  count += 1;
  return `${prefix}${process.pid}x${count}`;
}

/** Signs a new person up, confirms the mailed code and signs in. */
export async function newPerson(service: RunningService, name = fresh('ada')): Promise<Person> {
  const email = `${name}@example.com`;
  const form = { username: name, email, password, tosAgreed: true, marketingAgreed: false };
  const signedUp = await call(service.url, 'signUp', { body: form });
  assert.deepEqual(signedUp.body, { codeRequired: { username: name } });
  const code = codeIn(await lastLetter(service, email));
  const confirmed = await call(service.url, 'signUpConfirmCode', { body: { username: name, code } });
  assert.deepEqual(confirmed.body, { confirmed: true });
  const tokens = await signIn(service, name, password);
  return { username: name, email, password, ...tokens };
}

export async function signIn(
  service: RunningService,
  usernameOrEmail: string,
  secret: string,
): Promise<{ accessToken: string; refreshToken: string; idToken: string }> {
  const answer = await call(service.url, 'signIn', { body: { usernameOrEmail, password: secret } });
  assert.ok(answer.body.result, `signing in answers tokens: ${answer.text}`);
  return answer.body.result;
}

/** Makes an organization with the person as its first ADMIN. */
export async function newOrganization(
  service: RunningService,
  person: Person,
  name = fresh('acme'),
): Promise<string> {
  const made = await call(service.url, 'createOrganization', {
    token: person.accessToken,
    query: { organizationName: name },
  });
  assert.equal(made.status, 200);
  return name;
}

/** Adds a person to an organization with a role. */
export async function join(
  service: RunningService,
  admin: Person,
  organizationName: string,
  person: Person,
  role: Role,
): Promise<void> {
  const path = { organizationName };
  const token = admin.accessToken;
  const invited = await call(service.url, 'inviteToOrganization', {
    token,
    path,
    query: { email: person.email },
  });
  assert.equal(invited.status, 200);
  const changed = await call(service.url, 'setMemberRole', {
    token,
    path: { ...path, username: person.username },
    body: { role },
  });
  assert.equal(changed.status, 200);
}

export async function newApiKey(
  service: RunningService,
  token: string,
  organizationName: string,
  more: { queueWhitelist?: string[]; expiresAt?: number } = {},
): Promise<{ id: string; secret: string }> {
  const made = await call(service.url, 'createApiKey', {
    token,
    path: { organizationName },
    body: { description: 'made by a test', ...more },
  });
  assert.equal(made.status, 200, made.text);
  return made.body;
}

export async function lettersTo(service: RunningService, email: string): Promise<Letter[]> {
  const letters = await service.letters();
  return letters.filter((letter) => letter.to === email);
}

export async function lastLetter(service: RunningService, email: string): Promise<Letter> {
  const letter = (await lettersTo(service, email)).at(-1);
  assert.ok(letter, `a letter was sent to ${email}`);
  return letter;
}

/** The six-digit code in a letter. */
export function codeIn(letter: Letter): string {
  const code = /^(\d{6})$/m.exec(letter.text)?.[1];
  assert.ok(code, `the letter "${letter.subject}" has a code`);
  return code;
}
