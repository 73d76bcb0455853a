import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { call } from './harness/client.ts';
import { codeIn, fresh, lastLetter, lettersTo, newPerson, signIn } from './harness/people.ts';
import { type RunningService, startService } from './harness/service.ts';

const newPassword = 'nine green bottles hang';

describe('passwords', () => {
  let service: RunningService;
  before(async () => {
    service = await startService();
  });
  after(() => service.remove());

  const whoAmI = async (token: string) => (await call(service.url, 'whoAmI', { token })).status;

  it('are reset with a mailed code, which ends every session', async () => {
    const person = await newPerson(service);
    const forgot = await call(service.url, 'passwordForgot', { body: { usernameOrEmail: person.email } });
    assert.equal(forgot.status, 200);
    const code = codeIn(await lastLetter(service, person.email));
    const form = { usernameOrEmail: person.username, code, newPassword };
    const weak = await call(service.url, 'passwordReset', { body: { ...form, newPassword: 'password1' } });
    assert.equal(weak.body.code, 'PASSWORD_WEAK');
    const reset = await call(service.url, 'passwordReset', { body: form });
    assert.equal(reset.status, 200, reset.text);
    assert.equal(await whoAmI(person.accessToken), 401);
    const old = await call(service.url, 'signIn', {
      body: { usernameOrEmail: person.username, password: person.password },
    });
    assert.ok(old.body.errorMsg);
    await signIn(service, person.username, newPassword);
    const replayed = await call(service.url, 'passwordReset', { body: form });
    assert.equal(replayed.body.code, 'CODE_WRONG');
  });

  it('say the same of a forgotten password whether or not the account exists', async () => {
    const person = await newPerson(service);
    const known = await call(service.url, 'passwordForgot', { body: { usernameOrEmail: person.username } });
    const unknown = await call(service.url, 'passwordForgot', { body: { usernameOrEmail: fresh('nobody') } });
    assert.equal(known.status, unknown.status);
    assert.equal(known.text, unknown.text);
    const reset = await call(service.url, 'passwordReset', {
      body: { usernameOrEmail: fresh('nobody'), code: '123456', newPassword },
    });
    assert.equal(reset.body.code, 'CODE_WRONG');
  });

  it('allow a few guesses at a reset code from one address', async () => {
    const person = await newPerson(service);
    await call(service.url, 'passwordForgot', { body: { usernameOrEmail: person.email } });
    const code = codeIn(await lastLetter(service, person.email));
    const wrong = code === '111111' ? '222222' : '111111';
    const guess = (guessed: string) =>
      call(service.url, 'passwordReset', {
        body: { usernameOrEmail: person.username, code: guessed, newPassword },
      });
    let answer = await guess(wrong);
    for (let attempt = 0; attempt < 20 && answer.status !== 429; attempt += 1) {
      assert.equal(answer.body.code, 'CODE_WRONG');
      answer = await guess(wrong);
    }
    assert.equal(answer.body.code, 'TOO_MANY_ATTEMPTS');
    assert.equal((await guess(code)).status, 429, 'also the right one, or guessing would go on');
  });

  it('do not flood a mailbox', async () => {
    const person = await newPerson(service);
    for (let attempt = 0; attempt < 15; attempt += 1) {
      await call(service.url, 'passwordForgot', { body: { usernameOrEmail: person.email } });
    }
    const resets = (await lettersTo(service, person.email)).filter((letter) => /Reset/.test(letter.subject));
    assert.ok(resets.length < 10, `${resets.length} mails`);
  });

  it('are changed with the current one, which ends every other session', async () => {
    const person = await newPerson(service);
    const other = await signIn(service, person.username, person.password);
    const token = person.accessToken;
    const wrong = await call(service.url, 'passwordChange', {
      token,
      body: { currentPassword: 'not the right one', newPassword },
    });
    assert.equal(wrong.status, 403);
    const changed = await call(service.url, 'passwordChange', {
      token,
      body: { currentPassword: person.password, newPassword },
    });
    assert.equal(changed.status, 200, changed.text);
    assert.equal(await whoAmI(token), 200);
    assert.equal(await whoAmI(other.accessToken), 401);
    await signIn(service, person.email, newPassword);
    assert.match((await lastLetter(service, person.email)).subject, /was changed/);
  });
});
