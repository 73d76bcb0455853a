import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Answer, call } from './harness/client.ts';
import { join, newApiKey, newOrganization, newPerson, type Person } from './harness/people.ts';
import { createDatabase, postgresServer, type TestDatabase } from './harness/postgres.ts';
import { type RunningService, startService } from './harness/service.ts';

/** What one node changes must hold on the other within this. */
const everywhereMilliseconds = 1000;

describe('several nodes on one PostgreSQL', {
  skip: postgresServer === undefined && 'there is no PostgreSQL: run npm run test:engines',
}, () => {
  let database: TestDatabase;
  let one: RunningService;
  let other: RunningService;
  let admin: Person;
  let organizationName: string;

  before(async () => {
    database = await createDatabase(postgresServer ?? '');
    const environment = { MILLRACE_DATABASE_URL: database.url };
    // Both at once: the migrations must not get into each other's way.
    [one, other] = await Promise.all([startService({ environment }), startService({ environment })]);
    admin = await newPerson(one);
    organizationName = await newOrganization(one, admin);
  });
  after(async () => {
    await Promise.all([one?.remove(), other?.remove()]);
    await database?.drop();
  });

  const level = (node: RunningService, token: string) =>
    call(node.url, 'rateLimitGet', { token, path: { organizationName } });

  /** Asks until the answer has the status, and fails when that takes longer than it may. */
  async function soon(ask: () => Promise<Answer>, status: number): Promise<void> {
    const deadline = Date.now() + everywhereMilliseconds;
    let answer = await ask();
    while (answer.status !== status && Date.now() < deadline) answer = await ask();
    assert.equal(answer.status, status, answer.text);
  }

  it('accept the tokens of each other', async () => {
    assert.equal((await level(other, admin.accessToken)).status, 200);
    const refreshed = await call(other.url, 'signInRefreshToken', {
      body: { refreshToken: admin.refreshToken },
    });
    assert.ok(refreshed.body.result);
    assert.equal((await level(one, refreshed.body.result.accessToken)).status, 200);
  });

  it('end sessions, keys and memberships everywhere', async () => {
    const person = await newPerson(one);
    await join(one, admin, organizationName, person, 'MEMBER');
    const key = await newApiKey(one, person.accessToken, organizationName);
    assert.equal((await level(other, key.secret)).status, 200);
    assert.equal((await level(other, person.accessToken)).status, 200);
    const revoked = await call(one.url, 'revokeApiKey', {
      token: person.accessToken,
      path: { organizationName, apiKeyId: key.id },
    });
    assert.equal(revoked.status, 200);
    await soon(() => level(other, key.secret), 401);
    await call(one.url, 'removeMember', {
      token: admin.accessToken,
      path: { organizationName, username: person.username },
    });
    await soon(() => level(other, person.accessToken), 404);
    assert.equal((await call(other.url, 'whoAmI', { token: person.accessToken })).status, 200);
    await call(one.url, 'signOut', { body: { refreshToken: person.refreshToken } });
    await soon(() => call(other.url, 'whoAmI', { token: person.accessToken }), 401);
  });

  it('share one rate limit', async () => {
    const shared = await newOrganization(one, admin);
    const path = { organizationName: shared };
    const token = admin.accessToken;
    await call(one.url, 'rateLimitAdjust', { token, path, query: { level: 'TEN' } });
    const take = (node: RunningService) => call(node.url, 'rateLimitGet', { token, path });
    await soon(async () => {
      const answer = await take(other);
      const seen = answer.headers.get('ratelimit-policy') === '"organization";q=100;w=10';
      return seen ? answer : { ...answer, status: 0 };
    }, 200);
    const started = Date.now();
    const answers = await Promise.all(
      Array.from({ length: 300 }, (_v, index) => take(index % 2 ? one : other)),
    );
    const refilled = Math.ceil((Date.now() - started) / 100);
    const allowed = answers.filter((answer) => answer.status === 200).length;
    assert.ok(allowed <= 100 + refilled, `${allowed} of 300 were let through`);
    assert.ok(allowed >= 80, `only ${allowed} of 300 were let through`);
    assert.ok(answers.every((answer) => [200, 429].includes(answer.status)));
  });

  it('keep one account, organization and signing key when asked for at once', async () => {
    const name = `both${process.pid}`;
    const made = await Promise.all(
      [one, other, one, other].map((node) =>
        call(node.url, 'createOrganization', { token: admin.accessToken, query: { organizationName: name } }),
      ),
    );
    assert.deepEqual(made.map((answer) => answer.status).sort(), [200, 409, 409, 409]);
    const published = async (node: RunningService) =>
      (await fetch(`${node.url}/.well-known/jwks.json`)).text();
    assert.deepEqual(await published(one), await published(other));
  });
});
