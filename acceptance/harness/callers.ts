import assert from 'node:assert/strict';
import type { Role } from '@millrace/contract';
import { call } from './client.ts';
import { join, newApiKey, newOrganization, newPerson, type Person, signIn } from './people.ts';
import type { RunningService } from './service.ts';
import { deployed, invoke, onTask } from './tasks.ts';

/** What a caller is to the organization in the path. */
export type Standing =
  | { readonly credential: 'none' }
  | { readonly credential: 'bad' }
  | { readonly credential: 'session'; readonly role: Role | undefined }
  | { readonly credential: 'key'; readonly role: Role | undefined; readonly whitelist?: readonly string[] }
  | { readonly credential: 'task'; readonly outputs: readonly string[] };

export interface Caller {
  readonly name: string;
  readonly service: RunningService;
  readonly organizationName: string;
  readonly authorization: string | undefined;
  readonly standing: Standing;
}

/** The topic that requests are about. */
export const topicName = 'clicks';

const expiryMilliseconds = 5000;

/** Every kind of caller there is, on one service and about one organization of it. */
export async function makeCallers(service: RunningService): Promise<Caller[]> {
  const admin = await newPerson(service);
  const organizationName = await newOrganization(service, admin);
  const someone = async (role: Role) => {
    const person = await newPerson(service);
    await join(service, admin, organizationName, person, role);
    return person;
  };
  const [outsider, viewer, member, demoted, removed, departed] = await Promise.all([
    newPerson(service),
    someone('VIEWER'),
    someone('MEMBER'),
    someone('MEMBER'),
    someone('MEMBER'),
    someone('MEMBER'),
  ]);
  const elsewhere = await newOrganization(service, outsider);
  const second = await newOrganization(service, admin);

  const keyOf = async (token: string, more: Parameters<typeof newApiKey>[3] = {}, where = organizationName) =>
    (await newApiKey(service, token, where, more)).secret;
  const secrets = {
    viewer: keyOf(demoted.accessToken),
    restrictedViewer: keyOf(demoted.accessToken, { queueWhitelist: [topicName] }),
    member: keyOf(member.accessToken),
    admin: keyOf(admin.accessToken),
    listed: keyOf(member.accessToken, { queueWhitelist: ['orders', topicName] }),
    unlisted: keyOf(member.accessToken, { queueWhitelist: ['orders', topicName.toUpperCase()] }),
    empty: keyOf(admin.accessToken, { queueWhitelist: [] }),
    outsider: keyOf(outsider.accessToken, {}, elsewhere),
    restrictedOutsider: keyOf(outsider.accessToken, { queueWhitelist: [topicName] }, elsewhere),
    second: keyOf(admin.accessToken, {}, second),
    removed: keyOf(removed.accessToken),
    revoked: revokedKey(service, member.accessToken, organizationName),
    expired: expiredKey(service, member.accessToken, organizationName),
    task: taskKey(service, admin, organizationName, 'publisher', ['orders', topicName]),
    otherTask: taskKey(service, admin, organizationName, 'bystander', ['orders']),
    foreignTask: taskKey(service, outsider, elsewhere, 'publisher', [topicName]),
    deletedTask: deletedTaskKey(service, admin, organizationName),
  };
  await Promise.all(Object.values(secrets));
  await join(service, admin, organizationName, demoted, 'VIEWER');
  const path = { organizationName, username: removed.username };
  assert.equal((await call(service.url, 'removeMember', { token: admin.accessToken, path })).status, 200);
  const { refreshToken } = departed;
  assert.equal((await call(service.url, 'signOut', { body: { refreshToken } })).status, 200);
  const { idToken } = await signIn(service, member.username, member.password);

  const here = (name: string, authorization: string | undefined, standing: Standing): Caller => ({
    name,
    service,
    organizationName,
    authorization,
    standing,
  });
  const bad = (name: string, authorization: string) => here(name, authorization, { credential: 'bad' });
  const session = (name: string, token: string, role: Role | undefined) =>
    here(name, `Bearer ${token}`, { credential: 'session', role });
  const key = (name: string, secret: string, role: Role | undefined, whitelist?: string[]) =>
    here(name, `Bearer ${secret}`, { credential: 'key', role, ...(whitelist ? { whitelist } : {}) });
  const task = (name: string, secret: string, outputs: string[]) =>
    here(name, `Bearer ${secret}`, { credential: 'task', outputs });
  return [
    here('nobody', undefined, { credential: 'none' }),
    bad('a malformed credential', 'Bearer not-a-token'),
    bad('a scheme of another kind', `Basic ${Buffer.from(`${admin.username}:x`).toString('base64')}`),
    bad('an altered access token', `Bearer ${altered(admin.accessToken)}`),
    bad('an unsigned access token', `Bearer ${unsigned(admin.accessToken)}`),
    bad('an id token', `Bearer ${idToken}`),
    bad('a refresh token', `Bearer ${admin.refreshToken}`),
    bad('an access token under the scheme of keys', `apikey ${admin.accessToken}`),
    bad('a signed-out session', `Bearer ${departed.accessToken}`),
    bad('a revoked key', `Bearer ${await secrets.revoked}`),
    bad('an expired key', `Bearer ${await secrets.expired}`),
    bad('the key of a deleted task', `Bearer ${await secrets.deletedTask}`),
    bad('the key of a removed member', `Bearer ${await secrets.removed}`),
    session('a removed member', removed.accessToken, undefined),
    session('a member of another organization', outsider.accessToken, undefined),
    key('a key of another organization', await secrets.outsider, undefined),
    key('a restricted key of another organization', await secrets.restrictedOutsider, undefined, [topicName]),
    key("an admin's key of another organization", await secrets.second, undefined),
    session('a viewer', viewer.accessToken, 'VIEWER'),
    session('a member', member.accessToken, 'MEMBER'),
    session('an admin', admin.accessToken, 'ADMIN'),
    key("a viewer's key", await secrets.viewer, 'VIEWER'),
    key("a member's key", await secrets.member, 'MEMBER'),
    key("an admin's key", await secrets.admin, 'ADMIN'),
    key('a restricted key for the topic', await secrets.listed, 'MEMBER', ['orders', topicName]),
    key('a restricted key for other topics', await secrets.unlisted, 'MEMBER', [
      'orders',
      topicName.toUpperCase(),
    ]),
    key("an admin's restricted key for no topic", await secrets.empty, 'ADMIN', []),
    key("a viewer's restricted key for the topic", await secrets.restrictedViewer, 'VIEWER', [topicName]),
    task("a task's key with the topic among its outputs", await secrets.task, ['orders', topicName]),
    task("a task's key with other outputs", await secrets.otherTask, ['orders']),
    key("a task's key of another organization", await secrets.foreignTask, undefined, [topicName]),
  ];
}

/** Callers with access tokens of a service whose tokens live a second. */
export async function makeBriefCallers(brief: RunningService, stranger: Person): Promise<Caller[]> {
  const person = await newPerson(brief);
  const deadline = Date.now() + expiryMilliseconds;
  let owned = await ownedOrganization(brief, person.username, person.password);
  while (owned === undefined && Date.now() < deadline) {
    owned = await ownedOrganization(brief, person.username, person.password);
  }
  assert.ok(owned, 'a token lived long enough to make an organization');
  const { token, organizationName } = owned;
  await untilRefused(() => call(brief.url, 'whoAmI', { token }));
  const bad = (name: string, credential: string): Caller => ({
    name,
    service: brief,
    organizationName,
    authorization: `Bearer ${credential}`,
    standing: { credential: 'bad' },
  });
  return [
    bad('an expired access token', token),
    bad('an access token of another server', stranger.accessToken),
  ];
}

/** Makes an organization with a new token; undefined when the token expired before. */
async function ownedOrganization(brief: RunningService, username: string, password: string) {
  const { accessToken: token } = await signIn(brief, username, password);
  const organizationName = `brief${Date.now()}`;
  const made = await call(brief.url, 'createOrganization', { token, query: { organizationName } });
  return made.status === 200 ? { token, organizationName } : undefined;
}

async function revokedKey(service: RunningService, token: string, organizationName: string) {
  const { id, secret } = await newApiKey(service, token, organizationName);
  const path = { organizationName, apiKeyId: id };
  assert.equal((await call(service.url, 'revokeApiKey', { token, path })).status, 200);
  return secret;
}

async function expiredKey(service: RunningService, token: string, organizationName: string) {
  const expiresAt = Date.now() + 500;
  const { secret } = await newApiKey(service, token, organizationName, { expiresAt });
  await untilRefused(() => call(service.url, 'whoAmI', { token: secret }));
  return secret;
}

/** A task's own key, as the task finds it in its environment. */
async function taskKey(
  service: RunningService,
  person: Person,
  organizationName: string,
  taskId: string,
  outputQueueNames: string[],
): Promise<string> {
  const deployer = { url: service.url, token: person.accessToken, organizationName };
  const code = { 'index.mjs': 'export const handler = async () => process.env.MILLRACE_API_KEY;' };
  await deployed(deployer, taskId, code, { outputQueueNames });
  return String((await invoke(deployer, taskId, {})).body.result);
}

async function deletedTaskKey(service: RunningService, person: Person, organizationName: string) {
  const secret = await taskKey(service, person, organizationName, 'deleted', [topicName]);
  const deployer = { url: service.url, token: person.accessToken, organizationName };
  assert.equal((await onTask(deployer, 'delete', 'deleted')).body.status, 'NOTFOUND');
  return secret;
}

async function untilRefused(ask: () => Promise<{ status: number }>): Promise<void> {
  const deadline = Date.now() + expiryMilliseconds;
  let status = (await ask()).status;
  while (status !== 401 && Date.now() < deadline) status = (await ask()).status;
  assert.equal(status, 401, 'the credential expired in time');
}

function altered(token: string): string {
  const [header = '', payload = '', signature = ''] = token.split('.');
  const first = signature.startsWith('A') ? 'B' : 'A';
  return `${header}.${payload}.${first}${signature.slice(1)}`;
}

function unsigned(token: string): string {
  const header = Buffer.from(JSON.stringify({ alg: 'none', typ: 'at+jwt' })).toString('base64url');
  return `${header}.${token.split('.')[1]}.`;
}
