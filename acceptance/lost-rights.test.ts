import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { call } from './harness/client.ts';
import { openConnection } from './harness/connection.ts';
import {
  fresh,
  join,
  newApiKey,
  newOrganization,
  newPerson,
  type Person,
  password,
} from './harness/people.ts';
import { type RunningService, startService } from './harness/service.ts';

describe('a right that is lost', () => {
  let service: RunningService;
  let admin: Person;
  before(async () => {
    service = await startService();
    admin = await newPerson(service);
  });
  after(() => service.remove());

  /** Sends the headers of a request at once and its body only when told to. */
  async function held(method: string, path: string, token: string, body: object) {
    const text = JSON.stringify(body);
    const connection = await openConnection(service.url);
    connection.send(
      `${method} ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text.slice(0, 1)}`,
    );
    // The server has let the request in once it answers another one that came after.
    await call(service.url, 'ping');
    return async () => {
      connection.send(text.slice(1));
      const [answer] = await connection.answered(1, 8000);
      connection.destroy();
      return answer;
    };
  }

  it('is lost also to a request whose body is still on its way', async () => {
    const organizationName = await newOrganization(service, admin);
    const other = await newPerson(service);
    await join(service, admin, organizationName, other, 'ADMIN');
    // From now on the server knows the role by heart and lets requests in as they come.
    await call(service.url, 'listApiKeys', { token: other.accessToken, path: { organizationName } });
    const path = `/v1/organization/${organizationName}`;
    const promote = await held('PATCH', `${path}/members/${other.username}`, other.accessToken, {
      role: 'ADMIN',
    });
    const makeKey = await held('PUT', `${path}/auth/apikey`, other.accessToken, { description: 'late' });
    const asSignedOut = await held('PUT', `${path}/auth/apikey`, other.accessToken, { description: 'later' });
    await call(service.url, 'setMemberRole', {
      token: admin.accessToken,
      path: { organizationName, username: other.username },
      body: { role: 'VIEWER' },
    });
    assert.equal((await promote())?.status, 403);
    await call(service.url, 'removeMember', {
      token: admin.accessToken,
      path: { organizationName, username: other.username },
    });
    assert.equal((await makeKey())?.status, 404);
    await call(service.url, 'signOut', { body: { refreshToken: other.refreshToken } });
    assert.equal((await asSignedOut())?.status, 401);
    const keys = await call(service.url, 'listApiKeys', {
      token: admin.accessToken,
      path: { organizationName },
    });
    assert.deepEqual(keys.body.keys, []);
  });

  it('is the old password, also for a sign-in that began before it was changed', async () => {
    for (let round = 0; round < 3; round += 1) {
      const person = await newPerson(service);
      const form = { usernameOrEmail: person.username, password: person.password };
      const [changed, ...signIns] = await Promise.all([
        call(service.url, 'passwordChange', {
          token: person.accessToken,
          body: { currentPassword: person.password, newPassword: 'nine green bottles hang' },
        }),
        ...Array.from({ length: 6 }, () => call(service.url, 'signIn', { body: form })),
      ]);
      assert.equal(changed.status, 200);
      for (const { body } of signIns) {
        if (body.result === undefined) continue;
        assert.equal((await call(service.url, 'whoAmI', { token: body.result.accessToken })).status, 401);
      }
    }
  });
});

describe('what one caller can use up', () => {
  let service: RunningService;
  let admin: Person;
  before(async () => {
    service = await startService({ environment: { MILLRACE_LIMIT_API_KEYS: '3' } });
    admin = await newPerson(service);
  });
  after(() => service.remove());

  it('is a bounded number of API keys', async () => {
    const organizationName = await newOrganization(service, admin);
    const keys = [];
    for (let count = 0; count < 3; count += 1) {
      keys.push(await newApiKey(service, admin.accessToken, organizationName));
    }
    const create = () =>
      call(service.url, 'createApiKey', {
        token: admin.accessToken,
        path: { organizationName },
        body: { description: 'one too many' },
      });
    const refused = await create();
    assert.equal(refused.body.code, 'LIMIT_REACHED');
    const path = { organizationName, apiKeyId: keys[0]?.id ?? '' };
    await call(service.url, 'revokeApiKey', { token: admin.accessToken, path });
    assert.equal((await create()).status, 200);
  });

  it('is a bounded number of mails to one mailbox, whoever asks', async () => {
    const email = `${fresh('target')}@example.com`;
    for (let count = 0; count < 12; count += 1) {
      const username = fresh('flood');
      const body = { username, email, password, tosAgreed: true, marketingAgreed: false };
      assert.deepEqual((await call(service.url, 'signUp', { body })).body, { codeRequired: { username } });
    }
    const letters = (await service.letters()).filter((letter) => letter.to === email);
    assert.equal(letters.length, 8);
  });

  it('is not the way to the password of somebody whose reset is under attack', async () => {
    const victim = await newPerson(service);
    for (let count = 0; count < 10; count += 1) {
      await call(service.url, 'passwordForgot', { body: { usernameOrEmail: victim.username } });
    }
    for (let count = 0; count < 6; count += 1) {
      await call(service.url, 'passwordReset', {
        body: { usernameOrEmail: victim.username, code: '000000', newPassword: 'ten green bottles hang' },
      });
    }
    const letters = (await service.letters()).filter((letter) => letter.to === victim.email);
    const code = /^(\d{6})$/m.exec(letters.at(-1)?.text ?? '')?.[1] ?? '';
    const reset = await call(service.url, 'passwordReset', {
      body: { usernameOrEmail: victim.email, code, newPassword: 'nine green bottles hang' },
    });
    assert.equal(reset.status, 200, reset.text);
  });

  it('is told again to somebody who was invited and lost the mail', async () => {
    const organizationName = await newOrganization(service, admin);
    const username = fresh('guest');
    const email = `${username}@example.com`;
    const invite = () =>
      call(service.url, 'inviteToOrganization', {
        token: admin.accessToken,
        path: { organizationName },
        query: { email, username },
      });
    const temporary = async () => {
      const letters = (await service.letters()).filter((letter) => letter.to === email);
      return /^([0-9A-Za-z]{16})$/m.exec(letters.at(-1)?.text ?? '')?.[1] ?? '';
    };
    await invite();
    const first = await temporary();
    assert.equal((await invite()).status, 200);
    const second = await temporary();
    assert.notEqual(second, first);
    const old = await call(service.url, 'signIn', { body: { usernameOrEmail: email, password: first } });
    assert.ok(old.body.errorMsg);
    const now = await call(service.url, 'signIn', { body: { usernameOrEmail: email, password: second } });
    assert.ok(now.body.challengePasswordChange);
  });
});
