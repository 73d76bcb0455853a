import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Secret, TOTP } from 'otpauth';
import { call } from './harness/client.ts';
import { codeIn, fresh, lastLetter, newPerson, type Person, password, signIn } from './harness/people.ts';
import { type RunningService, startService } from './harness/service.ts';

/** The code of an authenticator app, some steps from now. */
export function oneTimeCode(secret: string, steps = 0): string {
  const device = new TOTP({ secret: Secret.fromBase32(secret) });
  return device.generate({ timestamp: Date.now() + steps * 30_000 });
}

describe('signing in', () => {
  let service: RunningService;
  before(async () => {
    service = await startService();
  });
  after(() => service.remove());

  const whoAmI = (token: string) => call(service.url, 'whoAmI', { token });

  it('answers tokens that tell who is calling', async () => {
    const person = await newPerson(service);
    const me = await whoAmI(person.accessToken);
    assert.deepEqual(me.body, {
      username: person.username,
      email: person.email,
      totpEnabled: false,
      organizations: [],
    });
  });

  it('accepts the schemes of existing clients in any case', async () => {
    const { accessToken } = await newPerson(service);
    const written = ['cognito ', 'COGNITO ', 'bearer ', 'Bearer  '].map((scheme) => scheme + accessToken);
    for (const header of written) {
      const answer = await call(service.url, 'whoAmI', { headers: { authorization: header } });
      assert.equal(answer.status, 200, header.slice(0, 10));
    }
    const wrong = await call(service.url, 'whoAmI', { headers: { authorization: `apikey ${accessToken}` } });
    assert.equal(wrong.status, 401);
  });

  it('says the same of a wrong password and an unknown account', async () => {
    const person = await newPerson(service);
    const wrong = await call(service.url, 'signIn', {
      body: { usernameOrEmail: person.username, password: 'not the right one' },
    });
    const unknown = await call(service.url, 'signIn', {
      body: { usernameOrEmail: fresh('nobody'), password: 'not the right one' },
    });
    assert.equal(wrong.status, 200);
    assert.equal(wrong.text, unknown.text);
    assert.deepEqual(Object.keys(wrong.body), ['errorMsg']);
  });

  it('asks an unconfirmed account for its code and mails it again', async () => {
    const name = fresh('late');
    const email = `${name}@example.com`;
    const body = { username: name, email, password, tosAgreed: true, marketingAgreed: true };
    await call(service.url, 'signUp', { body });
    const answer = await call(service.url, 'signIn', { body: { usernameOrEmail: name, password } });
    assert.deepEqual(answer.body, { codeRequired: { username: name } });
    const code = codeIn(await lastLetter(service, email));
    await call(service.url, 'signUpConfirmCode', { body: { username: name, code } });
    await signIn(service, name, password);
  });

  it('rotates refresh tokens: the old one answers the same successor for ten seconds', async () => {
    const person = await newPerson(service);
    const { refreshToken } = person;
    const first = await call(service.url, 'signInRefreshToken', { body: { refreshToken } });
    const again = await call(service.url, 'signInRefreshToken', { body: { refreshToken } });
    assert.ok(first.body.result && again.body.result);
    assert.notEqual(first.body.result.refreshToken, refreshToken);
    assert.equal(first.body.result.refreshToken, again.body.result.refreshToken);
    for (const { accessToken } of [first.body.result, again.body.result]) {
      assert.equal((await whoAmI(accessToken)).status, 200);
    }
    const next = await call(service.url, 'signInRefreshToken', {
      body: { refreshToken: first.body.result.refreshToken },
    });
    assert.ok(next.body.result);
  });

  it('answers one successor to many refreshes at once', async () => {
    const { refreshToken } = await newPerson(service);
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => call(service.url, 'signInRefreshToken', { body: { refreshToken } })),
    );
    const successors = new Set(answers.map((answer) => answer.body.result?.refreshToken));
    assert.equal(successors.size, 1);
    assert.ok(!successors.has(undefined));
  });

  it('refuses made-up refresh tokens in words', async () => {
    for (const refreshToken of ['', 'x', 'Vt0bq1l7nE1mR0bJm8c2W6sT3yKx5uPz4dFgHj9aLq8', '\u0000']) {
      const answer = await call(service.url, 'signInRefreshToken', { body: { refreshToken } });
      assert.equal(answer.status, 200);
      assert.ok(answer.body.errorMsg);
    }
  });

  it('ends a session at once when signing out, whatever token of it is given', async () => {
    const person = await newPerson(service);
    const refreshed = await call(service.url, 'signInRefreshToken', {
      body: { refreshToken: person.refreshToken },
    });
    assert.ok(refreshed.body.result);
    assert.equal((await whoAmI(refreshed.body.result.accessToken)).status, 200);
    const out = await call(service.url, 'signOut', { body: { refreshToken: person.refreshToken } });
    assert.equal(out.status, 200);
    assert.equal((await whoAmI(person.accessToken)).status, 401);
    assert.equal((await whoAmI(refreshed.body.result.accessToken)).status, 401);
    const after = await call(service.url, 'signInRefreshToken', {
      body: { refreshToken: refreshed.body.result.refreshToken },
    });
    assert.ok(after.body.errorMsg);
    const twice = await call(service.url, 'signOut', { body: { refreshToken: 'unknown' } });
    assert.equal(twice.status, 200);
  });

  async function enrol(person: Person): Promise<{ secret: string; recoveryCodes: string[] }> {
    const token = person.accessToken;
    const enrolment = await call(service.url, 'totpEnrol', { token });
    const { secret, otpauthUri } = enrolment.body;
    assert.match(secret, /^[A-Z2-7]{32}$/);
    assert.ok(otpauthUri.startsWith('otpauth://totp/') && otpauthUri.includes(secret));
    const wrong = await call(service.url, 'totpConfirm', { token, body: { code: '000000' } });
    assert.equal(wrong.status, 422);
    // The code of the step before, so that the present one is still unused.
    const confirmed = await call(service.url, 'totpConfirm', {
      token,
      body: { code: oneTimeCode(secret, -1) },
    });
    assert.equal(confirmed.status, 200, confirmed.text);
    assert.equal(confirmed.body.recoveryCodes.length, 10);
    return { secret, recoveryCodes: [...confirmed.body.recoveryCodes] };
  }

  async function challenge(person: Person): Promise<{ session: string; username: string }> {
    const answer = await call(service.url, 'signIn', {
      body: { usernameOrEmail: person.username, password: person.password },
    });
    assert.deepEqual(Object.keys(answer.body), ['challengeTotpCode']);
    assert.ok(answer.body.challengeTotpCode);
    return answer.body.challengeTotpCode;
  }

  it('asks for a one-time code once one is enrolled, and takes each code once', async () => {
    const person = await newPerson(service);
    const { secret } = await enrol(person);
    assert.equal((await whoAmI(person.accessToken)).body.totpEnabled, true);
    const first = await challenge(person);
    assert.equal(first.username, person.username);
    const code = oneTimeCode(secret);
    const done = await call(service.url, 'signInChallengeTotpCode', { body: { ...first, code } });
    assert.ok(done.body.result, done.text);
    const reused = await call(service.url, 'signInChallengeTotpCode', { body: { ...first, code } });
    assert.ok(reused.body.errorMsg, 'a session is good for one success');
    const second = await challenge(person);
    const replayed = await call(service.url, 'signInChallengeTotpCode', { body: { ...second, code } });
    assert.ok(replayed.body.errorMsg, 'a code is good for one use');
    const next = await call(service.url, 'signInChallengeTotpCode', {
      body: { ...second, code: oneTimeCode(secret, 1) },
    });
    assert.ok(next.body.result, next.text);
  });

  it('of many who give the same one-time code at once, one succeeds', async () => {
    const person = await newPerson(service);
    const { secret } = await enrol(person);
    const challenges = [await challenge(person), await challenge(person), await challenge(person)];
    const code = oneTimeCode(secret);
    const answers = await Promise.all(
      challenges.map((each) => call(service.url, 'signInChallengeTotpCode', { body: { ...each, code } })),
    );
    assert.equal(answers.filter((answer) => answer.body.result !== undefined).length, 1);
  });

  it('takes a recovery code instead, once, in either spelling', async () => {
    const person = await newPerson(service);
    const { recoveryCodes } = await enrol(person);
    const [first = '', second = ''] = recoveryCodes;
    const one = await challenge(person);
    const done = await call(service.url, 'signInChallengeTotpCode', { body: { ...one, code: first } });
    assert.ok(done.body.result, done.text);
    const two = await challenge(person);
    const replayed = await call(service.url, 'signInChallengeTotpCode', { body: { ...two, code: first } });
    assert.ok(replayed.body.errorMsg);
    const spelled = second.replace('-', '').toUpperCase();
    const next = await call(service.url, 'signInChallengeTotpCode', { body: { ...two, code: spelled } });
    assert.ok(next.body.result, next.text);
  });

  it('ends a challenge after five wrong codes, and for a wrong username', async () => {
    const person = await newPerson(service);
    const other = await newPerson(service);
    const { secret } = await enrol(person);
    const one = await challenge(person);
    for (let attempt = 0; attempt < 5; attempt += 1) {
      const wrong = await call(service.url, 'signInChallengeTotpCode', { body: { ...one, code: '000000' } });
      assert.ok(wrong.body.errorMsg);
    }
    const late = await call(service.url, 'signInChallengeTotpCode', {
      body: { ...one, code: oneTimeCode(secret) },
    });
    assert.match(late.body.errorMsg ?? '', /expired/);
    const two = await challenge(person);
    const stolen = await call(service.url, 'signInChallengeTotpCode', {
      body: { session: two.session, username: other.username, code: oneTimeCode(secret) },
    });
    assert.ok(stolen.body.errorMsg);
  });

  it('removes the device with password and code, and refuses a second enrolment before', async () => {
    const person = await newPerson(service);
    const token = person.accessToken;
    const early = await call(service.url, 'totpConfirm', { token, body: { code: '123456' } });
    assert.equal(early.body.code, 'TOTP_NOT_ENROLLED');
    const { secret } = await enrol(person);
    assert.equal((await call(service.url, 'totpEnrol', { token })).body.code, 'TOTP_ALREADY_ENABLED');
    const wrongPassword = await call(service.url, 'totpRemove', {
      token,
      body: { password: 'not the right one', code: oneTimeCode(secret) },
    });
    assert.equal(wrongPassword.status, 403);
    const wrongCode = await call(service.url, 'totpRemove', { token, body: { password, code: '000000' } });
    assert.equal(wrongCode.status, 403);
    const removed = await call(service.url, 'totpRemove', {
      token,
      body: { password, code: oneTimeCode(secret) },
    });
    assert.equal(removed.status, 200, removed.text);
    await signIn(service, person.username, person.password);
  });
});
