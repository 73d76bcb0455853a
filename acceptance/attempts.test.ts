import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Answer } from './harness/client.ts';
import { fresh, newPerson, type Person, password } from './harness/people.ts';
import { type RunningService, startService } from './harness/service.ts';
import { callFrom } from './harness/visitors.ts';
import { median } from './harness/waiting.ts';

/** Guesses at one account from one address that are checked before the rest has to wait. */
const guesses = 10;
const home = '127.0.0.1';

function checkTooMany(answer: Answer): void {
  assert.equal(answer.status, 429, answer.text);
  assert.equal(answer.body.code, 'TOO_MANY_ATTEMPTS');
  assert.match(answer.headers.get('retry-after') ?? '', /^[1-9]\d*$/);
}

/** An answer without what is different each time. */
function wordsOf({ status, text }: Answer): string {
  return `${status} ${text.replace(/"requestId":"[^"]+"/, '').replace(/\d+ seconds/g, 'n seconds')}`;
}

describe('guessing passwords', { concurrency: true }, () => {
  let service: RunningService;
  let proxied: RunningService;
  before(async () => {
    [service, proxied] = await Promise.all([
      startService(),
      startService({ environment: { MILLRACE_TRUST_PROXY: '127.0.0.1, 127.0.0.2' } }),
    ]);
  });
  after(() => Promise.all([service.remove(), proxied.remove()]));

  const signInFrom = (
    address: string,
    usernameOrEmail: string,
    secret: string,
    headers: Record<string, string> = {},
    url = service.url,
  ) => callFrom(address, url, 'signIn', { usernameOrEmail, password: secret }, headers);

  const guess = (address: string, login: string) => signInFrom(address, login, 'not the right one');

  /** Guesses until it is refused; answers how many were checked, and the refusal. */
  async function guessUntilRefused(once: (count: number) => Promise<Answer>): Promise<[number, Answer]> {
    for (let count = 0; count < 4 * guesses; count += 1) {
      const answer = await once(count);
      if (answer.status !== 200) return [count, answer];
      assert.match(answer.text, /wrong/);
    }
    return assert.fail('guesses are not limited');
  }

  it('ends in 429 after some tries, and then the right one is not told apart either', async () => {
    const person = await newPerson(service);
    const [checked, refusal] = await guessUntilRefused(() => guess('127.0.0.11', person.username));
    assert.ok(checked >= 3 && checked <= guesses, `${checked} were checked`);
    checkTooMany(refusal);
    const right = await signInFrom('127.0.0.11', person.username, password);
    assert.equal(wordsOf(right), wordsOf(refusal));
  });

  it('is limited just so when all guesses are sent at once', async () => {
    const person = await newPerson(service);
    const answers = await Promise.all(Array.from({ length: 60 }, () => guess('127.0.0.12', person.username)));
    const checked = answers.filter((answer) => answer.status === 200).length;
    assert.ok(checked <= guesses, `${checked} of 60 were checked`);
    for (const answer of answers) if (answer.status !== 200) checkTooMany(answer);
  });

  it('counts every spelling of a name as the same, and does not tell that a name and an email are one', async () => {
    const person = await newPerson(service);
    const spellings = [
      person.username,
      person.username.toUpperCase(),
      person.email,
      person.email.toUpperCase(),
    ];
    const [checked] = await guessUntilRefused((count) =>
      guess('127.0.0.13', spellings[count % spellings.length] ?? ''),
    );
    assert.ok(checked <= 2 * guesses, `${checked} were checked`);
    const [byName] = await guessUntilRefused(() => guess('127.0.0.16', person.username));
    assert.ok(byName <= guesses, `${byName} were checked`);
    assert.equal((await guess('127.0.0.16', person.email)).status, 200, 'the email has tries of its own');
  });

  it('is the same for accounts that do not exist', async () => {
    const person = await newPerson(service);
    const nobody = fresh('nobody');
    const answersFor = async (login: string) => {
      const answers: string[] = [];
      for (let count = 0; count < guesses + 3; count += 1) {
        const spelled = count % 2 === 0 ? login : login.toUpperCase();
        answers.push(wordsOf(await guess('127.0.0.14', spelled)));
      }
      return answers;
    };
    const [known, unknown] = await Promise.all([answersFor(person.username), answersFor(nobody)]);
    assert.deepEqual(unknown, known);
    assert.ok(known.at(-1)?.startsWith('429'));
  });

  it('does not keep the owner out, who signs in from another address', async () => {
    const person = await newPerson(service);
    const [, refusal] = await guessUntilRefused(() => guess(home, person.username));
    checkTooMany(refusal);
    const owner = await signInFrom('127.0.0.2', person.username, password);
    assert.equal(owner.status, 200);
    assert.match(owner.text, /accessToken/);
    checkTooMany(await guess(home, person.username));
  });

  it('from many addresses at one account is limited for strangers, not where the owner was before', async () => {
    const owner = await newPerson(service);
    const attackers = Array.from({ length: 40 }, (_each, at) => `127.0.9.${at + 1}`);
    let checked = 0;
    let refused = 0;
    for (let round = 0; round < 4; round += 1) {
      const answers = await Promise.all(attackers.map((address) => guess(address, owner.username)));
      checked += answers.filter((answer) => answer.status === 200).length;
      refused += answers.filter((answer) => answer.status === 429).length;
    }
    assert.equal(checked + refused, 160);
    assert.ok(checked <= 105, `${checked} of 160 guesses were checked`);
    checkTooMany(await guess('127.0.9.200', owner.username));
    const known = await signInFrom(home, owner.username, password);
    assert.equal(known.status, 200, known.text);
    assert.match(known.text, /accessToken/);
    const other = await newPerson(service);
    assert.equal((await signInFrom('127.0.9.1', other.username, password)).status, 200);
  });

  it('at many accounts from one address is limited', async () => {
    const answers: Answer[] = [];
    for (let round = 0; round < 11; round += 1) {
      const wave = Array.from({ length: 30 }, () =>
        callFrom('127.0.0.15', service.url, 'signUpConfirmCode', {
          username: fresh('nobody'),
          code: '123456',
        }),
      );
      answers.push(...(await Promise.all(wave)));
    }
    const refused = answers.filter((answer) => answer.status === 429);
    assert.ok(refused.length > 0, 'not one of 330 was refused');
    for (const answer of refused) checkTooMany(answer);
  });

  it('is not helped by an X-Forwarded-For that anybody can write', async () => {
    const person = await newPerson(service);
    const headersOf = (count: number): Record<string, string>[] => [
      { 'x-forwarded-for': `203.0.113.${count}` },
      { forwarded: `for=203.0.113.${count}` },
      { 'x-real-ip': `203.0.113.${count}`, 'true-client-ip': `203.0.113.${count}` },
      { 'x-client-ip': `203.0.113.${count}`, 'cf-connecting-ip': `203.0.113.${count}` },
    ];
    const [checked] = await guessUntilRefused((count) =>
      signInFrom('127.0.0.16', person.username, 'not the right one', headersOf(count)[count % 4]),
    );
    assert.ok(checked <= guesses, `${checked} were checked`);
  });

  it('is counted by the address that a trusted proxy saw, and by no other', async () => {
    const person = await newPerson(proxied);
    const through = (proxy: string, forwarded: string) =>
      signInFrom(proxy, person.username, 'not the right one', { 'x-forwarded-for': forwarded }, proxied.url);
    const [checked] = await guessUntilRefused((count) =>
      // What the attacker writes stands before what the proxy adds, and is worth nothing.
      through(home, `198.51.100.${count}, 203.0.113.5`),
    );
    assert.ok(checked <= guesses, `${checked} were checked`);
    checkTooMany(await through('127.0.0.2', '203.0.113.5'));
    assert.equal((await through(home, '203.0.113.6')).status, 200, 'another visitor of the proxy');
    const [direct] = await guessUntilRefused((count) => through('127.0.0.17', `203.0.113.${100 + count}`));
    assert.ok(direct <= guesses, `${direct} were checked of one who only claims to be a proxy`);
  });
});

describe('limits on guessing', () => {
  it('are kept over a crash', async () => {
    const first = await startService();
    try {
      const { username } = await newPerson(first);
      const body = { usernameOrEmail: username, password: 'not the right one' };
      for (let count = 0; count < guesses + 1; count += 1) await callFrom(home, first.url, 'signIn', body);
      checkTooMany(await callFrom(home, first.url, 'signIn', body));
      await first.kill();
      const second = await startService({ dataDirectory: first.dataDirectory });
      try {
        checkTooMany(await callFrom(home, second.url, 'signIn', body));
        const owner = await callFrom('127.0.0.2', second.url, 'signIn', { ...body, password });
        assert.match(owner.text, /accessToken/);
      } finally {
        await second.kill();
      }
    } finally {
      await first.remove();
    }
  });
});

describe('the time of an answer', () => {
  let service: RunningService;
  let people: Person[];
  before(async () => {
    service = await startService();
    people = await Promise.all(Array.from({ length: 5 }, () => newPerson(service)));
  });
  after(() => service.remove());

  const rounds = 3;
  const samples = 20;

  /**
   * Measures a call for accounts that exist and for ones that do not, in turn. A busy machine may spoil a
   * round; a difference that is really there shows in all of them.
   */
  async function compare(once: (login: string, count: number) => Promise<Answer>) {
    const figures: string[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const known: number[] = [];
      const unknown: number[] = [];
      for (let count = 0; count < samples; count += 1) {
        const person = people[count % people.length];
        assert.ok(person);
        const logins: [string, number[]][] = [
          [person.username, known],
          [fresh('nobody'), unknown],
        ];
        if (count % 2 === 1) logins.reverse();
        for (const [login, times] of logins) {
          const began = performance.now();
          const answer = await once(login, round * samples + count);
          times.push(performance.now() - began);
          assert.equal(answer.status, 200);
        }
      }
      const [one, other] = [median(known), median(unknown)];
      figures.push(`known ${one.toFixed(1)} ms, unknown ${other.toFixed(1)} ms`);
      if (Math.abs(one - other) <= 0.3 * Math.min(one, other)) return { alike: true, figures };
    }
    return { alike: false, figures };
  }

  it('does not tell whether the account of a sign-in exists', async (test) => {
    // Each sample comes from an address of its own, so that no limit interferes.
    const once = (login: string, count: number) =>
      callFrom(`127.0.3.${count + 1}`, service.url, 'signIn', {
        usernameOrEmail: login,
        password: 'not the right one',
      });
    await once(fresh('nobody'), 200);
    const { alike, figures } = await compare(once);
    for (const figure of figures) test.diagnostic(`signIn: ${figure}`);
    assert.ok(alike, figures.join('; '));
  });

  it('does not tell whether the account of a forgotten password exists', async (test) => {
    const once = (login: string) => callFrom(home, service.url, 'passwordForgot', { usernameOrEmail: login });
    const { alike, figures } = await compare(once);
    for (const figure of figures) test.diagnostic(`passwordForgot: ${figure}`);
    assert.ok(alike, figures.join('; '));
  });
});
