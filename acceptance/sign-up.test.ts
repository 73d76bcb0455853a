import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { call } from './harness/client.ts';
import { codeIn, fresh, lastLetter, lettersTo, newPerson, password, signIn } from './harness/people.ts';
import { type RunningService, startService } from './harness/service.ts';

describe('signing up', () => {
  let service: RunningService;
  before(async () => {
    service = await startService();
  });
  after(() => service.remove());

  const form = (name: string, more: object = {}) => ({
    username: name,
    email: `${name}@example.com`,
    password,
    tosAgreed: true,
    marketingAgreed: false,
    ...more,
  });

  it('mails a six-digit code that confirms the account, and then signs in by username or email', async () => {
    const name = fresh('grace');
    const answer = await call(service.url, 'signUp', { body: form(name) });
    assert.equal(answer.status, 200);
    assert.deepEqual(answer.body, { codeRequired: { username: name } });
    const code = codeIn(await lastLetter(service, `${name}@example.com`));
    const confirmed = await call(service.url, 'signUpConfirmCode', { body: { username: name, code } });
    assert.deepEqual(confirmed.body, { confirmed: true });
    await signIn(service, name, password);
    await signIn(service, `${name.toUpperCase()}@EXAMPLE.com`, password);
  });

  it('refuses in words what a person can mend: terms, weak passwords and a taken username', async () => {
    const person = await newPerson(service);
    const attempts: [string, object, RegExp][] = [
      ['terms', form(fresh('n'), { tosAgreed: false }), /terms/i],
      ['a short password', form(fresh('n'), { password: 'k2P' }), /at least 8/],
      ['an empty password', form(fresh('n'), { password: '' }), /at least 8/],
      ['a common password', form(fresh('n'), { password: 'Password123' }), /commonly used/],
      ['a common password with a mark', form(fresh('n'), { password: 'Passw0rd!' }), /commonly used/],
      ['a repeated character', form(fresh('n'), { password: 'zzzzzzzzzzzzzz' }), /./],
      ['a sequence', form(fresh('n'), { password: 'bcdefghijklm' }), /sequence/],
      ['a taken username', form(fresh('n'), { username: person.username.toUpperCase() }), /taken/],
    ];
    for (const [what, body, message] of attempts) {
      const answer = await call(service.url, 'signUp', { body: body as ReturnType<typeof form> });
      assert.equal(answer.status, 200, what);
      assert.match(answer.body.errorMsg ?? '', message, what);
      assert.deepEqual(Object.keys(answer.body), ['errorMsg'], what);
    }
  });

  it('does not tell that an email has an account: its owner is told by mail instead', async () => {
    const owner = await newPerson(service);
    const name = fresh('mallory');
    const answer = await call(service.url, 'signUp', { body: form(name, { email: owner.email }) });
    assert.deepEqual(answer.body, { codeRequired: { username: name } });
    const letter = await lastLetter(service, owner.email);
    assert.match(letter.subject, /already have/);
    assert.doesNotMatch(letter.text, /\d{6}/);
    // The same path as any other pending account: wrong codes, and sign-in asks for the code again.
    const wrong = await call(service.url, 'signUpConfirmCode', { body: { username: name, code: '000000' } });
    assert.match(wrong.body.errorMsg ?? '', /code/);
    const signedIn = await call(service.url, 'signIn', { body: { usernameOrEmail: name, password } });
    assert.deepEqual(signedIn.body, { codeRequired: { username: name } });
    await signIn(service, owner.email, owner.password);
  });

  it('mails a new code after five wrong ones and says so; the old one is dead', async () => {
    const name = fresh('joan');
    const email = `${name}@example.com`;
    await call(service.url, 'signUp', { body: form(name) });
    const first = codeIn(await lastLetter(service, email));
    const wrong = first === '111111' ? '222222' : '111111';
    for (let attempt = 1; attempt <= 4; attempt += 1) {
      const answer = await call(service.url, 'signUpConfirmCode', { body: { username: name, code: wrong } });
      assert.match(answer.body.errorMsg ?? '', /wrong/, `attempt ${attempt}`);
      assert.doesNotMatch(answer.body.errorMsg ?? '', /new one/);
    }
    const fifth = await call(service.url, 'signUpConfirmCode', { body: { username: name, code: wrong } });
    assert.match(fifth.body.errorMsg ?? '', /new one was mailed/);
    assert.equal((await lettersTo(service, email)).length, 2);
    const second = codeIn(await lastLetter(service, email));
    if (first !== second) {
      const old = await call(service.url, 'signUpConfirmCode', { body: { username: name, code: first } });
      assert.match(old.body.errorMsg ?? '', /wrong/);
    }
    const right = await call(service.url, 'signUpConfirmCode', { body: { username: name, code: second } });
    assert.deepEqual(right.body, { confirmed: true });
    const replayed = await call(service.url, 'signUpConfirmCode', { body: { username: name, code: second } });
    assert.ok(replayed.body.errorMsg);
    assert.equal(replayed.body.confirmed, undefined);
  });

  it('of many who give the right code at once, one succeeds', async () => {
    const name = fresh('race');
    await call(service.url, 'signUp', { body: form(name) });
    const code = codeIn(await lastLetter(service, `${name}@example.com`));
    const answers = await Promise.all(
      Array.from({ length: 5 }, () =>
        call(service.url, 'signUpConfirmCode', { body: { username: name, code } }),
      ),
    );
    assert.equal(answers.filter((answer) => answer.body.confirmed).length, 1);
  });

  it('sends the code again to somebody who signs up twice, and to nobody else', async () => {
    const name = fresh('twice');
    const email = `${name}@example.com`;
    await call(service.url, 'signUp', { body: form(name) });
    const again = await call(service.url, 'signUp', { body: form(name) });
    assert.deepEqual(again.body, { codeRequired: { username: name } });
    const other = await call(service.url, 'signUp', {
      body: form(name, { password: 'another long phrase' }),
    });
    assert.match(other.body.errorMsg ?? '', /taken/);
    const code = codeIn(await lastLetter(service, email));
    const confirmed = await call(service.url, 'signUpConfirmCode', { body: { username: name, code } });
    assert.deepEqual(confirmed.body, { confirmed: true });
  });

  it('limits guesses at codes with 429 and Retry-After', async () => {
    const name = fresh('guess');
    await call(service.url, 'signUp', { body: form(name) });
    let refused: Awaited<ReturnType<typeof call>> | undefined;
    for (let attempt = 0; attempt < 40 && refused === undefined; attempt += 1) {
      const answer = await call(service.url, 'signUpConfirmCode', {
        body: { username: name, code: '123123' },
      });
      if (answer.status === 429) refused = answer;
    }
    assert.equal(refused?.body.code, 'TOO_MANY_ATTEMPTS');
    assert.ok(Number(refused?.headers.get('retry-after')) >= 1);
  });
});

describe('a server by invitation only', () => {
  it('refuses sign-up in words', async () => {
    const service = await startService({ environment: { MILLRACE_SIGN_UP: 'invite' } });
    try {
      const name = fresh('open');
      const body = {
        username: name,
        email: `${name}@example.com`,
        password,
        tosAgreed: true,
        marketingAgreed: false,
      };
      const answer = await call(service.url, 'signUp', { body });
      assert.match(answer.body.errorMsg ?? '', /invitation/);
      assert.deepEqual(await service.letters(), []);
    } finally {
      await service.remove();
    }
  });
});
