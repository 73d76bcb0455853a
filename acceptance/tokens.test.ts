import assert from 'node:assert/strict';
import { createPublicKey, randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { after, before, describe, it } from 'node:test';
import { createLocalJWKSet, jwtVerify } from 'jose';
import { type Answer, call, checkProblem } from './harness/client.ts';
import { exchange } from './harness/connection.ts';
import { encode, forge, formsOf, own, readToken, withSharedSecret } from './harness/forgery.ts';
import { newApiKey, newOrganization, newPerson, type Person, password, signIn } from './harness/people.ts';
import { type RunningService, startService } from './harness/service.ts';
import { eventually } from './harness/waiting.ts';

const graceMilliseconds = 10_000;

/** The body of a refusal without what is different in every answer. */
function wordsOf(answer: Answer): object {
  const { requestId: _id, ...words } = answer.body;
  return words;
}

async function freePort(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  assert.ok(address !== null && typeof address === 'object');
  await new Promise((resolve) => server.close(resolve));
  return String(address.port);
}

describe('access tokens', { concurrency: true }, () => {
  let service: RunningService;
  let person: Person;
  let idToken: string;
  let refusal: object;
  before(async () => {
    service = await startService();
    person = await newPerson(service);
    ({ idToken } = await signIn(service, person.username, password));
    refusal = wordsOf(await call(service.url, 'whoAmI', { token: 'nothing.like.one' }));
  });
  after(() => service.remove());

  const whoAmI = (token: string) => call(service.url, 'whoAmI', { token });

  /** Holds that a credential is refused, in the same words as every other. */
  async function isRefused(authorization: string, what: string): Promise<void> {
    const { answers } = await exchange(
      service.url,
      `GET /v1/auth/me HTTP/1.1\r\nHost: a\r\nAuthorization: ${authorization}\r\n\r\n`,
    );
    const [answer] = answers;
    assert.ok(answer, what);
    assert.equal(answer.status, 401, `${what}: ${answer.text}`);
    checkProblem(answer);
    assert.match(answer.headers.get('www-authenticate') ?? '', /^Bearer/, what);
    assert.deepEqual(wordsOf(answer), refusal, what);
  }

  async function publishedKeys() {
    const response = await fetch(`${service.url}/.well-known/jwks.json`);
    assert.equal(response.status, 200);
    const published: { keys: Record<string, string>[] } = JSON.parse(await response.text());
    return published;
  }

  it('are verified by others with the published keys, which have no private part', async () => {
    const published = await publishedKeys();
    assert.ok(published.keys.length >= 1);
    for (const key of published.keys) {
      assert.deepEqual(Object.keys(key).sort(), ['alg', 'crv', 'kid', 'kty', 'use', 'x']);
    }
    const keys = createLocalJWKSet(published);
    const { payload, protectedHeader } = await jwtVerify(person.accessToken, keys, {
      algorithms: ['EdDSA'],
      typ: 'at+jwt',
      requiredClaims: ['iss', 'aud', 'sub', 'exp', 'iat', 'jti'],
    });
    assert.equal(protectedHeader.kid, published.keys[0]?.kid);
    assert.equal(Number(payload.exp) - Number(payload.iat), 900);
    const identity = await jwtVerify(idToken, keys, { algorithms: ['EdDSA'] });
    assert.equal(identity.payload.email, person.email);
    assert.notDeepEqual(identity.payload.aud, payload.aud);
  });

  it('are refused when somebody else made them, however they are signed', async () => {
    const { header, claims, signature } = readToken(person.accessToken);
    const published = await publishedKeys();
    const jwk = published.keys.find((key) => key.kid === header.kid) ?? {};
    const publicKey = createPublicKey({ key: jwk, format: 'jwk' });
    const renewed = { ...claims, exp: Number(claims.exp) + 3600 };
    const forged: [string, string][] = [
      ['no algorithm', forge({ ...header, alg: 'none' }, claims, () => '')],
      ['no algorithm, spelled otherwise', forge({ ...header, alg: 'nOnE' }, claims, () => '')],
      ['no algorithm and the old signature', forge({ ...header, alg: 'none' }, claims, () => signature)],
      ['an old signature on new claims', forge(header, renewed, () => signature)],
      ['an empty signature', forge(header, claims, () => '')],
      ['a key of their own under our id', forge(header, claims, own.edDsa)],
      ['Ed25519 by its other name', forge({ ...header, alg: 'Ed25519' }, claims, own.edDsa)],
      ['ES256', forge({ ...header, alg: 'ES256' }, claims, own.es256)],
      ['RS256', forge({ ...header, alg: 'RS256' }, claims, own.rs256)],
      ['ES256 called EdDSA', forge(header, claims, own.es256)],
      ['zeros', forge(header, claims, () => Buffer.alloc(64).toString('base64url'))],
      ['another type', forge({ ...header, typ: 'JWT' }, claims, own.edDsa)],
    ];
    for (const [at, secret] of formsOf(publicKey, jwk).entries()) {
      const token = forge({ ...header, alg: 'HS256' }, claims, withSharedSecret(secret));
      forged.push([`our public key as a shared secret, form ${at}`, token]);
    }
    const strangeIds = ['', 'other', '../../etc/passwd', "' or '1'='1", 'a'.repeat(2000), 0, null, {}, ['a']];
    for (const kid of strangeIds) {
      forged.push([
        `key id ${JSON.stringify(kid).slice(0, 30)}`,
        forge({ ...header, kid }, claims, own.edDsa),
      ]);
    }
    for (const [what, token] of forged) await isRefused(`Bearer ${token}`, what);
  });

  it('cannot bring their own keys, and the server fetches none', async () => {
    let fetched = 0;
    const elsewhere = createServer((_request, response) => {
      fetched += 1;
      response.end(JSON.stringify({ keys: [{ ...own.publicJwk, kid: 'mine', alg: 'EdDSA' }] }));
    });
    await new Promise<void>((resolve) => elsewhere.listen(0, '127.0.0.1', resolve));
    const address = elsewhere.address();
    assert.ok(address !== null && typeof address === 'object');
    const url = `http://127.0.0.1:${address.port}/keys`;
    const { header, claims } = readToken(person.accessToken);
    try {
      const additions: Record<string, unknown>[] = [
        { jku: url },
        { jku: url, kid: 'mine' },
        { x5u: url },
        { x5c: ['MIIB'] },
        { jwk: own.publicJwk },
        { jwk: own.publicJwk, kid: undefined },
        { crit: ['exp'] },
        { crit: ['b64'], b64: false },
        { zip: 'DEF' },
        { enc: 'A256GCM' },
      ];
      for (const addition of additions) {
        const token = forge({ ...header, ...addition }, claims, own.edDsa);
        await isRefused(`Bearer ${token}`, JSON.stringify(addition));
      }
      await isRefused(
        `Bearer ${forge({ ...header, jku: url }, { ...claims, iss: url }, own.edDsa)}`,
        'issuer',
      );
      assert.equal(fetched, 0);
    } finally {
      elsewhere.close();
    }
  });

  it('are not the other secrets of a session, and those are not access tokens', async () => {
    const organizationName = await newOrganization(service, person);
    const key = await newApiKey(service, person.accessToken, organizationName);
    await isRefused(`Bearer ${idToken}`, 'an id token');
    await isRefused(`Bearer ${person.refreshToken}`, 'a refresh token');
    await isRefused(`ApiKey ${person.refreshToken}`, 'a refresh token as a key');
    await isRefused(`ApiKey ${person.accessToken}`, 'an access token as a key');
    await isRefused(`Cognito ${key.secret}`, 'a key as an access token');
    await isRefused(`Bearer ${key.secret.slice(0, -1)}`, 'a key cut short');
    await isRefused(`Bearer ${key.id}`, 'the id of a key');
    await isRefused(`Bearer mr_${person.accessToken}`, 'a token dressed as a key');
    for (const refreshToken of [person.accessToken, idToken, key.secret]) {
      const answer = await call(service.url, 'signInRefreshToken', { body: { refreshToken } });
      assert.deepEqual(Object.keys(answer.body), ['errorMsg']);
    }
  });

  it('are refused when they are mangled', async () => {
    const token = person.accessToken;
    const [header = '', claims = '', signature = ''] = token.split('.');
    const mangled: [string, string][] = [
      ['cut short', token.slice(0, -5)],
      ['without a signature', `${header}.${claims}`],
      ['with an empty signature', `${header}.${claims}.`],
      ['with a dot after', `${token}.`],
      ['with a dot before', `.${token}`],
      ['with five parts', `${token}.a.b`],
      ['with a space inside', `${header}. ${claims}.${signature}`],
      ['with a tab inside', `${header}.\t${claims}.${signature}`],
      ['twice', `${token},${token}`],
      ['in quotes', `"${token}"`],
      ['padded', `${header}=.${claims}=.${signature}=`],
      ['in standard base64', token.replaceAll('-', '+').replaceAll('_', '/').concat('+')],
      ['percent-encoded', token.replaceAll('.', '%2e')],
      ['nothing but dots', '..'],
      ['empty objects', `${encode({})}.${encode({})}.`],
      ['no objects', `${encode(null)}.${encode([])}.${encode(1)}`],
      ['12 kB', 'a'.repeat(12_000)],
    ];
    for (const [what, each] of mangled) await isRefused(`Bearer ${each}`, what);
    const schemes = ['Basic', 'Digest', 'Token', 'Bearer:', 'Bearer,'];
    for (const scheme of schemes) await isRefused(`${scheme} ${token}`, scheme);
    await isRefused(token, 'no scheme');
    await isRefused('Bearer', 'no token');
    const huge = await exchange(
      service.url,
      `GET /v1/auth/me HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${'a'.repeat(100_000)}\r\n\r\n`,
    );
    assert.ok(huge.answers.every((answer) => [401, 431].includes(answer.status)));
    const inQuery = await fetch(`${service.url}/v1/auth/me?access_token=${token}`);
    assert.equal(inQuery.status, 401);
    assert.equal((await whoAmI(token)).status, 200, 'the real one is still good');
  });

  it('are refused when there are two of them, in any order', async () => {
    const right = `Authorization: Bearer ${person.accessToken}\r\n`;
    const wrong = 'Authorization: Bearer nothing.like.one\r\n';
    for (const [what, headers] of Object.entries({
      'right, wrong': `${right}${wrong}`,
      'wrong, right': `${wrong}${right}`,
      'right twice': `${right}${right}`,
    })) {
      const { answers } = await exchange(
        service.url,
        `GET /v1/auth/me HTTP/1.1\r\nHost: a\r\n${headers}\r\n`,
      );
      assert.equal(answers[0]?.status, 401, what);
    }
  });

  it('are refused with a changed character anywhere, and as random bytes', async () => {
    const token = person.accessToken;
    // The last character has bits that mean nothing, so it is left alone.
    for (let at = 0; at < token.length - 1; at += 7) {
      const changed = token[at] === 'A' ? 'B' : 'A';
      if (token[at] === '.') continue;
      await isRefused(`Bearer ${token.slice(0, at)}${changed}${token.slice(at + 1)}`, `changed at ${at}`);
    }
    for (let count = 0; count < 150; count += 1) {
      const random = randomBytes(1 + Math.floor(Math.random() * 400));
      const bytes = Buffer.from(random.map((byte) => (byte < 0x21 || byte === 0x7f ? 0x2e : byte)));
      const text = bytes.toString('latin1');
      const prefix = count % 3 === 0 ? 'mr_' : count % 3 === 1 ? `${token.split('.')[0]}.` : '';
      await isRefused(`Bearer ${prefix}${text}`, `bytes ${bytes.toString('hex')}`);
    }
  });

  it('are those of this issuer alone', async () => {
    const first = await startService();
    try {
      const visitor = await newPerson(first);
      assert.equal((await whoAmI(visitor.accessToken)).status, 401, 'another service has other keys');
      await first.stop();
      // The same keys under another name: a token made for one service is none for another.
      const port = await freePort();
      const second = await startService({
        dataDirectory: first.dataDirectory,
        environment: { MILLRACE_PORT: port, MILLRACE_PUBLIC_URL: `http://127.0.0.1:${port}` },
      });
      try {
        const refused = await call(second.url, 'whoAmI', { token: visitor.accessToken });
        assert.deepEqual(wordsOf(refused), refusal);
        const { accessToken } = await signIn(second, visitor.username, password);
        assert.equal(readToken(accessToken).claims.iss, second.url);
        assert.equal((await call(second.url, 'whoAmI', { token: accessToken })).status, 200);
      } finally {
        await second.kill();
      }
    } finally {
      await first.remove();
    }
  });

  it('expire, also when they were used before', async () => {
    const brief = await startService({ environment: { MILLRACE_ACCESS_TOKEN_SECONDS: '1' } });
    try {
      const visitor = await newPerson(brief);
      const tokens = await signIn(brief, visitor.username, password);
      const used = await call(brief.url, 'whoAmI', { token: tokens.accessToken });
      assert.ok([200, 401].includes(used.status));
      for (const token of [tokens.accessToken, visitor.accessToken]) {
        const refused = await eventually('the token expires', 4000, async () => {
          const answer = await call(brief.url, 'whoAmI', { token });
          return answer.status === 200 ? undefined : answer;
        });
        assert.deepEqual(wordsOf(refused), refusal);
      }
      const { refreshToken } = tokens;
      const refreshed = await call(brief.url, 'signInRefreshToken', { body: { refreshToken } });
      assert.ok(refreshed.body.result, 'the session lives on');
    } finally {
      await brief.remove();
    }
  });

  it('end with their session when a refresh token comes back after its grace', async () => {
    const refresh = (refreshToken: string) =>
      call(service.url, 'signInRefreshToken', { body: { refreshToken } });
    const victim = await newPerson(service);
    const elsewhere = await signIn(service, victim.username, password);
    const first = await refresh(victim.refreshToken);
    const rotatedAt = performance.now();
    assert.ok(first.body.result);
    const second = await refresh(first.body.result.refreshToken);
    assert.ok(second.body.result);
    const { accessToken, refreshToken } = second.body.result;
    await eventually(
      'the grace is over',
      graceMilliseconds + 2000,
      () => (performance.now() > rotatedAt + graceMilliseconds + 300 ? true : undefined),
      250,
    );
    assert.equal((await whoAmI(accessToken)).status, 200);
    const replayed = await refresh(victim.refreshToken);
    assert.deepEqual(Object.keys(replayed.body), ['errorMsg']);
    for (const token of [victim.accessToken, first.body.result.accessToken, accessToken]) {
      assert.equal((await whoAmI(token)).status, 401);
    }
    assert.ok((await refresh(refreshToken)).body.errorMsg, 'the newest token of the family is dead, too');
    assert.equal(
      (await whoAmI(elsewhere.accessToken)).status,
      200,
      'another session of the same person is not',
    );
  });
});
