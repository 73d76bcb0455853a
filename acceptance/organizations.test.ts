import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { call } from './harness/client.ts';
import {
  fresh,
  join,
  lastLetter,
  newApiKey,
  newOrganization,
  newPerson,
  type Person,
} from './harness/people.ts';
import { type RunningService, startService } from './harness/service.ts';

describe('organizations', () => {
  let service: RunningService;
  let admin: Person;
  before(async () => {
    service = await startService();
    admin = await newPerson(service);
  });
  after(() => service.remove());

  it('have unique names without regard to case', async () => {
    const name = await newOrganization(service, admin, fresh('Shop'));
    const taken = await call(service.url, 'createOrganization', {
      token: admin.accessToken,
      query: { organizationName: name.toUpperCase() },
    });
    assert.equal(taken.status, 409);
    assert.equal(taken.body.code, 'NAME_TAKEN');
    const level = await call(service.url, 'rateLimitGet', {
      token: admin.accessToken,
      path: { organizationName: name.toLowerCase() },
    });
    assert.equal(level.body, 'DEFAULT');
  });

  it('of ten who ask for one name at once, one gets it', async () => {
    const organizationName = fresh('rush');
    const answers = await Promise.all(
      Array.from({ length: 10 }, () =>
        call(service.url, 'createOrganization', { token: admin.accessToken, query: { organizationName } }),
      ),
    );
    assert.deepEqual(answers.map((answer) => answer.status).sort(), [200, ...Array(9).fill(409)]);
  });

  it('add an existing account at once as MEMBER and tell it by mail', async () => {
    const organizationName = await newOrganization(service, admin);
    const person = await newPerson(service);
    const invitation = {
      token: admin.accessToken,
      path: { organizationName },
      query: { email: person.email.toUpperCase() },
    };
    assert.equal((await call(service.url, 'inviteToOrganization', invitation)).status, 200);
    assert.match((await lastLetter(service, person.email)).text, new RegExp(organizationName));
    const me = await call(service.url, 'whoAmI', { token: person.accessToken });
    assert.deepEqual(me.body.organizations, [{ organizationName, role: 'MEMBER' }]);
    assert.equal(
      (await call(service.url, 'inviteToOrganization', invitation)).status,
      200,
      'again is no error',
    );
    const members = await call(service.url, 'listMembers', {
      token: admin.accessToken,
      path: { organizationName },
    });
    assert.equal(members.body.members.length, 2);
  });

  it('ask for a username when nobody has the email, and then make an account', async () => {
    const organizationName = await newOrganization(service, admin);
    const path = { organizationName };
    const token = admin.accessToken;
    const username = fresh('new');
    const email = `${username}@example.com`;
    const missing = await call(service.url, 'inviteToOrganization', { token, path, query: { email } });
    assert.equal(missing.status, 404);
    assert.match(missing.body.detail, /username/);
    const made = await call(service.url, 'inviteToOrganization', { token, path, query: { email, username } });
    assert.equal(made.status, 200, made.text);
    const temporary = /^([0-9A-Za-z]{16})$/m.exec((await lastLetter(service, email)).text)?.[1] ?? '';
    const first = await call(service.url, 'signIn', {
      body: { usernameOrEmail: email, password: temporary },
    });
    assert.deepEqual(Object.keys(first.body), ['challengePasswordChange']);
    const challenge = first.body.challengePasswordChange;
    assert.ok(challenge && challenge.username === username);
    const change = (newPassword: string) =>
      call(service.url, 'signInChallengePasswordChange', { body: { ...challenge, newPassword } });
    assert.match((await change('password1')).body.errorMsg ?? '', /commonly/);
    assert.match((await change(temporary)).body.errorMsg ?? '', /differ/);
    const done = await change('nine green bottles hang');
    assert.ok(done.body.result, done.text);
    const me = await call(service.url, 'whoAmI', { token: done.body.result.accessToken });
    assert.deepEqual(me.body.organizations, [{ organizationName, role: 'MEMBER' }]);
    assert.ok((await change('ten green bottles hang')).body.errorMsg, 'a challenge is good for one success');
    const old = await call(service.url, 'signIn', { body: { usernameOrEmail: email, password: temporary } });
    assert.ok(old.body.errorMsg);
  });

  it('refuse an invitation whose username or email is taken', async () => {
    const organizationName = await newOrganization(service, admin);
    const person = await newPerson(service);
    const token = admin.accessToken;
    const path = { organizationName };
    const username = await call(service.url, 'inviteToOrganization', {
      token,
      path,
      query: { email: `${fresh('free')}@example.com`, username: person.username },
    });
    assert.equal(username.status, 409);
    const email = await call(service.url, 'inviteToOrganization', {
      token,
      path,
      query: { email: person.email, username: fresh('free') },
    });
    assert.equal(email.status, 409);
  });

  it('change roles at once and always keep an ADMIN', async () => {
    const organizationName = await newOrganization(service, admin);
    const person = await newPerson(service);
    await join(service, admin, organizationName, person, 'VIEWER');
    const path = { organizationName };
    const denied = await call(service.url, 'createApiKey', {
      token: person.accessToken,
      path,
      body: { description: 'no' },
    });
    assert.equal(denied.body.code, 'ROLE_TOO_LOW');
    await join(service, admin, organizationName, person, 'ADMIN');
    const members = await call(service.url, 'listMembers', { token: person.accessToken, path });
    assert.deepEqual(members.body.members.map(({ username, role }) => [username, role]).sort(), [
      [admin.username, 'ADMIN'],
      [person.username, 'ADMIN'],
    ]);
    const demote = (username: string) =>
      call(service.url, 'setMemberRole', {
        token: admin.accessToken,
        path: { organizationName, username },
        body: { role: 'MEMBER' },
      });
    assert.equal((await demote(person.username)).status, 200);
    assert.equal((await demote(admin.username)).body.code, 'LAST_ADMIN');
    const leave = await call(service.url, 'removeMember', {
      token: admin.accessToken,
      path: { organizationName, username: admin.username },
    });
    assert.equal(leave.body.code, 'LAST_ADMIN');
    assert.equal((await demote(fresh('nobody'))).body.code, 'MEMBER_NOT_FOUND');
  });

  it('keep an ADMIN when two demote each other at once', async () => {
    for (let round = 0; round < 5; round += 1) {
      const organizationName = await newOrganization(service, admin);
      const other = await newPerson(service);
      await join(service, admin, organizationName, other, 'ADMIN');
      const demote = (by: Person, who: Person) =>
        call(service.url, 'setMemberRole', {
          token: by.accessToken,
          path: { organizationName, username: who.username },
          body: { role: 'VIEWER' },
        });
      const answers = await Promise.all([demote(admin, other), demote(other, admin)]);
      assert.ok(answers.some((answer) => answer.status !== 200));
    }
  });

  it('end membership at once, with the keys that the member made', async () => {
    const organizationName = await newOrganization(service, admin);
    const person = await newPerson(service);
    await join(service, admin, organizationName, person, 'MEMBER');
    const key = await newApiKey(service, person.accessToken, organizationName);
    const path = { organizationName };
    assert.equal((await call(service.url, 'rateLimitGet', { token: key.secret, path })).status, 200);
    assert.equal((await call(service.url, 'rateLimitGet', { token: person.accessToken, path })).status, 200);
    const removed = await call(service.url, 'removeMember', {
      token: admin.accessToken,
      path: { organizationName, username: person.username },
    });
    assert.equal(removed.status, 200);
    assert.equal((await call(service.url, 'rateLimitGet', { token: key.secret, path })).status, 401);
    const outside = await call(service.url, 'rateLimitGet', { token: person.accessToken, path });
    const missing = await call(service.url, 'rateLimitGet', {
      token: person.accessToken,
      path: { organizationName: fresh('nothing') },
    });
    assert.equal(outside.status, 404);
    const { requestId: _one, ...outsideBody } = outside.body;
    const { requestId: _two, ...missingBody } = missing.body;
    assert.deepEqual(outsideBody, missingBody);
    await join(service, admin, organizationName, person, 'MEMBER');
    assert.equal(
      (await call(service.url, 'rateLimitGet', { token: key.secret, path })).status,
      401,
      'no return',
    );
  });
});
