import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { call } from './harness/client.ts';
import { fresh, join, newApiKey, newOrganization, newPerson, type Person } from './harness/people.ts';
import { type RunningService, startService } from './harness/service.ts';

describe('API keys', () => {
  let service: RunningService;
  let admin: Person;
  let member: Person;
  let organizationName: string;
  const path = () => ({ organizationName });
  before(async () => {
    service = await startService();
    admin = await newPerson(service);
    member = await newPerson(service);
    organizationName = await newOrganization(service, admin);
    await join(service, admin, organizationName, member, 'MEMBER');
  });
  after(() => service.remove());

  const level = (token: string) => call(service.url, 'rateLimitGet', { token, path: path() });

  it('act for their owner in one organization, under both schemes', async () => {
    const { secret } = await newApiKey(service, member.accessToken, organizationName);
    assert.match(secret, /^mr_[0-9A-Za-z]{36}$/);
    assert.equal((await level(secret)).status, 200);
    const headers = { authorization: `ApiKey ${secret}` };
    assert.equal((await call(service.url, 'rateLimitGet', { headers, path: path() })).status, 200);
    const me = await call(service.url, 'whoAmI', { token: secret });
    assert.equal(me.body.username, member.username);
    assert.deepEqual(me.body.organizations, [{ organizationName, role: 'MEMBER' }]);
    const elsewhere = await newOrganization(service, member);
    const other = await call(service.url, 'rateLimitGet', {
      token: secret,
      path: { organizationName: elsewhere },
    });
    assert.equal(other.status, 404);
    const cognito = await call(service.url, 'rateLimitGet', {
      headers: { authorization: `cognito ${secret}` },
      path: path(),
    });
    assert.equal(cognito.status, 401);
  });

  it('are shown with their secret once, and listed without', async () => {
    const expiresAt = Date.now() + 3_600_000;
    const made = await call(service.url, 'createApiKey', {
      token: member.accessToken,
      path: path(),
      body: { description: 'for the site', queueWhitelist: ['clicks'], expiresAt },
    });
    const { secret, ...described } = made.body;
    assert.equal(described.ownerUsername, member.username);
    assert.equal(described.ownerType, 'USER');
    assert.equal(described.revocable, true);
    assert.deepEqual(described.queueWhitelist, ['clicks']);
    assert.equal(described.expiresAt, expiresAt);
    const listed = await call(service.url, 'listApiKeys', { token: member.accessToken, path: path() });
    assert.deepEqual(
      listed.body.keys.find((key) => key.id === described.id),
      described,
    );
    assert.ok(!listed.text.includes(secret));
  });

  it('are listed and revoked by their owner, and all of them by an ADMIN', async () => {
    const mine = await newApiKey(service, admin.accessToken, organizationName);
    const theirs = await newApiKey(service, member.accessToken, organizationName);
    const ids = async (token: string) =>
      (await call(service.url, 'listApiKeys', { token, path: path() })).body.keys.map((key) => key.id);
    assert.ok(!(await ids(member.accessToken)).includes(mine.id));
    assert.ok((await ids(admin.accessToken)).includes(theirs.id));
    const revoke = (token: string, apiKeyId: string) =>
      call(service.url, 'revokeApiKey', { token, path: { organizationName, apiKeyId } });
    assert.equal((await revoke(member.accessToken, mine.id)).status, 403);
    assert.equal((await level(theirs.secret)).status, 200);
    assert.equal((await revoke(admin.accessToken, theirs.id)).status, 200);
    assert.equal((await level(theirs.secret)).status, 401);
    assert.equal((await revoke(admin.accessToken, theirs.id)).status, 404);
    assert.equal((await revoke(mine.secret, mine.id)).status, 200, 'a key may revoke itself');
    assert.equal((await level(mine.secret)).status, 401);
  });

  it('never manage members, even those of an ADMIN', async () => {
    const { secret } = await newApiKey(service, admin.accessToken, organizationName);
    const invited = await call(service.url, 'inviteToOrganization', {
      token: secret,
      path: path(),
      query: { email: `${fresh('x')}@example.com`, username: fresh('x') },
    });
    assert.equal(invited.body.code, 'ROLE_TOO_LOW');
    const created = await call(service.url, 'createOrganization', {
      token: secret,
      query: { organizationName: fresh('other') },
    });
    assert.equal(created.body.code, 'SESSION_REQUIRED');
    const adjusted = await call(service.url, 'rateLimitAdjust', {
      token: secret,
      path: path(),
      query: { level: 'DEFAULT' },
    });
    assert.equal(adjusted.status, 200);
  });

  it('with a whitelist may publish to those topics and nothing else', async () => {
    const { secret } = await newApiKey(service, admin.accessToken, organizationName, {
      queueWhitelist: ['clicks'],
    });
    for (const id of ['rateLimitGet', 'getTopics', 'listApiKeys', 'listMembers'] as const) {
      assert.equal(
        (await call(service.url, id, { token: secret, path: path() })).body.code,
        'KEY_RESTRICTED',
        id,
      );
    }
    assert.equal((await call(service.url, 'whoAmI', { token: secret })).body.code, 'KEY_RESTRICTED');
    const other = await call(service.url, 'message', {
      token: secret,
      path: { organizationName, topicName: 'orders' },
      query: { messageKey: 'k' },
    });
    assert.equal(other.body.code, 'KEY_RESTRICTED');
  });

  it('expire when they should', async () => {
    const past = await call(service.url, 'createApiKey', {
      token: member.accessToken,
      path: path(),
      body: { description: 'too late', expiresAt: Date.now() - 1 },
    });
    assert.equal(past.status, 400);
    assert.equal(past.body.errors?.[0]?.pointer, '/expiresAt');
    const expiresAt = Date.now() + 700;
    const { secret } = await newApiKey(service, member.accessToken, organizationName, { expiresAt });
    assert.equal((await level(secret)).status, 200);
    let status = 200;
    while (status === 200 && Date.now() < expiresAt + 3000) status = (await level(secret)).status;
    assert.equal(status, 401);
    assert.ok(Date.now() >= expiresAt);
  });

  it('say when they were last used', async () => {
    const { id, secret } = await newApiKey(service, member.accessToken, organizationName);
    const find = async () => {
      const listed = await call(service.url, 'listApiKeys', { token: member.accessToken, path: path() });
      return listed.body.keys.find((key) => key.id === id);
    };
    assert.equal((await find())?.lastUsedAt, undefined);
    const before = Date.now();
    await level(secret);
    const used = (await find())?.lastUsedAt;
    assert.ok(used !== undefined && Math.abs(Date.parse(used) - before) < 5000);
  });

  it('with a wrong character are refused', async () => {
    const { secret } = await newApiKey(service, member.accessToken, organizationName);
    for (const index of [3, 20, 38]) {
      const other = secret[index] === 'a' ? 'b' : 'a';
      const altered = secret.slice(0, index) + other + secret.slice(index + 1);
      assert.equal((await level(altered)).status, 401);
    }
  });
});
