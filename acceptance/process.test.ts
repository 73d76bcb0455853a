import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { call, checkProblem, read } from './harness/client.ts';
import { type Connection, openConnection } from './harness/connection.ts';
import {
  codeIn,
  fresh,
  lastLetter,
  newApiKey,
  newOrganization,
  newPerson,
  password,
  signIn,
} from './harness/people.ts';
import { type RefusedStart, refusedStart } from './harness/refusals.ts';
import { type RunningService, startService, within } from './harness/service.ts';
import { eventually } from './harness/waiting.ts';

async function temporaryDirectory(): Promise<string> {
  return mkdtemp(join(tmpdir(), 'millrace-acceptance-'));
}

function signInBytes(username: string, secret: string): { head: string; body: string } {
  const body = JSON.stringify({ usernameOrEmail: username, password: secret });
  const head = `POST /v1/auth/sign-in HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n`;
  return { head, body };
}

describe('the process', { concurrency: 2 }, () => {
  it('says that it is ready in one line, on a free port of its choice, and is', async () => {
    const [one, other] = await Promise.all([startService(), startService()]);
    try {
      assert.notEqual(one.url, other.url);
      for (const service of [one, other]) {
        assert.match(service.output().stdout, /^millrace ready on http:\/\/127\.0\.0\.1:\d+\n$/);
        for (const path of ['/livez', '/readyz', '/v1/health']) {
          const answer = await read(await fetch(`${service.url}${path}`));
          assert.equal(answer.status, 200, path);
          assert.equal(answer.body.status, 'ok', path);
        }
      }
    } finally {
      await Promise.all([one.remove(), other.remove()]);
    }
  });

  it('lets one process at a time have a data directory', async () => {
    const first = await startService();
    try {
      const person = await newPerson(first);
      const second = await refusedStart({ MILLRACE_DATA_DIR: first.dataDirectory });
      assert.notEqual(second.code, 0);
      assert.equal(second.stdout, '');
      assert.equal(second.lines.length, 1);
      assert.ok(second.lines[0]?.includes(first.dataDirectory), second.lines[0]);
      await signIn(first, person.username, password);
      await first.stop();
      const third = await startService({ dataDirectory: first.dataDirectory });
      await signIn(third, person.username, password);
      await third.kill();
      const fourth = await startService({ dataDirectory: first.dataDirectory });
      await fourth.stop();
    } finally {
      await first.remove();
    }
  });

  it('has everything it acknowledged after a crash, and the sessions go on at another port', async () => {
    const service = await startService();
    try {
      const person = await newPerson(service);
      const organizationName = await newOrganization(service, person);
      const key = await newApiKey(service, person.accessToken, organizationName);
      const letters = (await service.letters()).length;
      // Several write at once while the process is killed; what was acknowledged by then must be there.
      const acknowledged: string[] = [];
      const writers = Array.from({ length: 8 }, async () => {
        for (let count = 0; count < 500; count += 1) {
          const name = fresh('crash');
          const made = await call(service.url, 'createOrganization', {
            token: person.accessToken,
            query: { organizationName: name },
          });
          if (made.status !== 200) return;
          acknowledged.push(name);
        }
      });
      const ended = Promise.allSettled(writers);
      await eventually('some writes', 10_000, () => (acknowledged.length >= 100 ? true : undefined), 2);
      await service.kill();
      await ended;

      const again = await startService({ dataDirectory: service.dataDirectory });
      try {
        assert.notEqual(again.url, service.url);
        const me = await call(again.url, 'whoAmI', { token: person.accessToken });
        assert.equal(me.status, 200, 'the access token is still good');
        const names = new Set(me.body.organizations.map((each) => each.organizationName));
        for (const name of [organizationName, ...acknowledged]) assert.ok(names.has(name), name);
        const path = { organizationName };
        assert.equal((await call(again.url, 'rateLimitGet', { token: key.secret, path })).status, 200);
        const refreshed = await call(again.url, 'signInRefreshToken', {
          body: { refreshToken: person.refreshToken },
        });
        assert.ok(refreshed.body.result);
        await signIn(again, person.email, password);
        assert.equal((await again.letters()).length, letters);
      } finally {
        await again.kill();
      }
    } finally {
      await service.remove();
    }
  });

  it('ends at once on SIGTERM when idle, whatever connections are open', async () => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      const service = await startService();
      const connections: Connection[] = [];
      try {
        for (let count = 0; count < 10; count += 1) connections.push(await openConnection(service.url));
        for (const connection of connections.slice(0, 5)) {
          connection.send('GET /v1/health HTTP/1.1\r\nHost: a\r\n\r\n');
          await connection.answered(1, 4000);
        }
        const started = performance.now();
        const exited = new Promise<number | null>((resolve) => service.process.once('exit', resolve));
        service.process.kill(signal);
        assert.equal(await within(exited, 30_000, 'the service did not end'), 0);
        const took = performance.now() - started;
        assert.ok(took < 3000, `${signal} took ${Math.round(took)} ms`);
      } finally {
        for (const connection of connections) connection.destroy();
        await service.remove();
      }
    }
  });

  it('finishes what it has in hand on SIGTERM, and refuses what is new', async () => {
    const service = await startService();
    try {
      const person = await newPerson(service);
      const { head, body } = signInBytes(person.username, password);
      const [inHand, kept] = [await openConnection(service.url), await openConnection(service.url)];
      kept.send('GET /v1/health HTTP/1.1\r\nHost: a\r\n\r\n');
      await kept.answered(1, 4000);
      inHand.send(`${head}Expect: 100-continue\r\n\r\n`);
      await inHand.answered(1, 4000);

      const exited = new Promise<number | null>((resolve) => service.process.once('exit', resolve));
      service.process.kill('SIGTERM');
      await eventually('new requests are refused', 5000, async () => {
        const answer = await fetch(`${service.url}/v1/health`).then(read, () => undefined);
        if (answer?.status === 200) return undefined;
        if (answer !== undefined) {
          checkProblem(answer);
          assert.equal(answer.body.code, 'SHUTTING_DOWN');
          assert.ok(Number(answer.headers.get('retry-after')) >= 1);
        }
        return true;
      });
      kept.send('GET /v1/health HTTP/1.1\r\nHost: a\r\n\r\n');
      const [, late] = await kept.answered(2, 4000);
      assert.ok(late === undefined ? kept.isClosed() : late.status === 503);

      inHand.send(body);
      const answers = await inHand.answered(2, 8000);
      assert.equal(answers[1]?.status, 200, 'the request in hand is answered');
      assert.ok(answers[1].text.includes('accessToken'));
      assert.equal(await within(exited, 5000, 'the service did not end'), 0);
    } finally {
      await service.remove();
    }
  });

  it('does not wait longer than it may for what is in hand', async () => {
    const service = await startService({ environment: { MILLRACE_SHUTDOWN_SECONDS: '1' } });
    try {
      const connection = await openConnection(service.url);
      connection.send(`${signInBytes('a', 'b').head}Expect: 100-continue\r\n\r\n`);
      await connection.answered(1, 4000);
      const started = performance.now();
      assert.equal(await service.stop(), 0);
      assert.ok(performance.now() - started < 4000);
      connection.destroy();
    } finally {
      await service.remove();
    }
  });

  it('keeps its files from other users of the machine', async () => {
    const parent = await temporaryDirectory();
    const shared = join(parent, 'shared');
    await mkdir(shared, { mode: 0o755 });
    try {
      for (const dataDirectory of [join(parent, 'not', 'yet'), shared]) {
        const service = await startService({ dataDirectory });
        const person = await newPerson(service);
        await newOrganization(service, person);
        const entries = await readdir(dataDirectory, { recursive: true });
        assert.ok(entries.includes('outbox.jsonl'));
        const made = dataDirectory === shared ? entries : ['.', ...entries];
        for (const entry of made) {
          const { mode } = await stat(join(dataDirectory, entry));
          assert.equal(mode & 0o007, 0, `${dataDirectory}/${entry} is ${(mode & 0o777).toString(8)}`);
        }
        await service.stop();
      }
    } finally {
      await rm(parent, { recursive: true, force: true });
    }
  });
});

describe('a start that cannot be', { concurrency: 3 }, () => {
  function isRefused(refused: RefusedStart, names: RegExp, secret?: string): void {
    const said = refused.lines.join('\n');
    assert.equal(refused.code, 78, said);
    assert.equal(refused.stdout, '', said);
    assert.equal(refused.lines.length, 1, said);
    assert.match(said, /^millrace: .+\.$/);
    assert.match(said, names);
    assert.doesNotMatch(said, /node:internal|\bat .+:\d+:\d+|Error:/);
    if (secret !== undefined) assert.ok(!said.includes(secret), 'what may be secret is not repeated');
  }

  const secret = 'hunter2-is-secret';
  const bad: [string, string][] = [
    ['MILLRACE_FOO', 'x'],
    ['MILLRACE_PRT', '8080'],
    ['MILLRACE_PORT', 'http'],
    ['MILLRACE_PORT', '65536'],
    ['MILLRACE_HOST', ''],
    ['MILLRACE_HOST', '203.0.113.7'],
    ['MILLRACE_LOG_LEVEL', 'loud'],
    ['MILLRACE_SIGN_UP', 'yes'],
    ['MILLRACE_PUBLIC_URL', 'ftp://example.com'],
    ['MILLRACE_CORS_ORIGINS', 'https://app.example/path'],
    ['MILLRACE_TRUST_PROXY', 'the proxy'],
    ['MILLRACE_LIMIT_REQUEST_BYTES', '0'],
    ['MILLRACE_ACCESS_TOKEN_SECONDS', '1.5'],
    ['MILLRACE_DATABASE_URL', `mysql://millrace:${secret}@db.example/millrace`],
    ['MILLRACE_DATABASE_URL', `postgres://millrace:${secret}@127.0.0.1:1/millrace`],
    ['MILLRACE_DATABASE_URL', `postgres://millrace:${secret}@127.0.0.1:none/millrace`],
    ['MILLRACE_MAIL_URL', `http://millrace:${secret}@mail.example`],
    ['MILLRACE_OBJECTS_URL', `https://millrace:${secret}@objects.example/bucket`],
    ['MILLRACE_OBJECTS_URL', `s3://millrace:${secret}@/`],
    ['MILLRACE_DATABASE_URL_FILE', '/nowhere/at/all'],
  ];
  for (const [name, value] of bad) {
    it(`is refused in a sentence that names ${name} for "${value.replace(secret, '...')}"`, async () => {
      const refused = await refusedStart({ [name]: value });
      isRefused(refused, new RegExp(name.replace('_URL_FILE', '_URL')), secret);
    });
  }

  it('is told all that is wrong at once', async () => {
    const refused = await refusedStart({ MILLRACE_PORT: 'x', MILLRACE_HOTS: 'y', MILLRACE_SIGN_UP: 'z' });
    assert.equal(refused.code, 78);
    assert.equal(refused.lines.length, 3);
    assert.match(refused.lines.join('\n'), /did you mean MILLRACE_HOST/);
  });

  it('is refused when the port is in use', async () => {
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
    const address = taken.address();
    assert.ok(address !== null && typeof address === 'object');
    try {
      isRefused(await refusedStart({ MILLRACE_PORT: String(address.port) }), /MILLRACE_PORT/);
    } finally {
      taken.close();
    }
  });

  it('is refused when the data directory is a file', async () => {
    const directory = await temporaryDirectory();
    const file = join(directory, 'file');
    await writeFile(file, 'not a directory');
    try {
      isRefused(await refusedStart({ MILLRACE_DATA_DIR: file }), new RegExp(file));
      isRefused(await refusedStart({ MILLRACE_DATA_DIR: join(file, 'below') }), new RegExp(file));
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  });

  it('takes a setting from a file, and ignores what belongs to the client', async () => {
    const directory = await temporaryDirectory();
    const file = join(directory, 'sign-up');
    await writeFile(file, 'invite\n');
    const client = {
      MILLRACE_ENDPOINT: 'x',
      MILLRACE_API_KEY: 'x',
      MILLRACE_ORGANIZATION: 'x',
      MILLRACE_PROFILE: 'x',
    };
    const service = await startService({ environment: { ...client, MILLRACE_SIGN_UP_FILE: file } });
    try {
      const name = fresh('guest');
      const body = {
        username: name,
        email: `${name}@example.com`,
        password,
        tosAgreed: true,
        marketingAgreed: false,
      };
      const answer = await call(service.url, 'signUp', { body });
      assert.match(answer.body.errorMsg ?? '', /invitation/);
    } finally {
      await Promise.all([service.remove(), rm(directory, { recursive: true, force: true })]);
    }
  });
});

describe('the log at its most talkative', () => {
  let service: RunningService;
  before(async () => {
    service = await startService({ environment: { MILLRACE_LOG_LEVEL: 'debug' } });
  });
  after(() => service.remove());

  it('has no secret of anybody in it', async () => {
    const secrets = new Map<string, string>();
    const person = await newPerson(service);
    secrets.set('password', person.password);
    secrets.set('access token', person.accessToken);
    secrets.set('refresh token', person.refreshToken);
    secrets.set('sign-up code', codeIn(await lastLetter(service, person.email)));
    const token = person.accessToken;
    const organizationName = await newOrganization(service, person);
    const key = await newApiKey(service, token, organizationName);
    secrets.set('API key', key.secret);
    await call(service.url, 'rateLimitGet', { token: key.secret, path: { organizationName } });
    const refreshed = await call(service.url, 'signInRefreshToken', {
      body: { refreshToken: person.refreshToken },
    });
    for (const [name, value] of Object.entries(refreshed.body.result ?? {}))
      secrets.set(`second ${name}`, value);
    const enrolled = await call(service.url, 'totpEnrol', { token });
    secrets.set('one-time secret', enrolled.body.secret);
    await call(service.url, 'passwordForgot', { body: { usernameOrEmail: person.username } });
    secrets.set('reset code', codeIn(await lastLetter(service, person.email)));
    // What people send by mistake is as secret as what is right.
    const mistakes = ['mr_notmykeynotmykeynotmykeynotmykeynot', 'eyJhbGciOiJub25lIn0.e30.mistaken'];
    for (const mistake of mistakes) {
      secrets.set(mistake, mistake);
      await call(service.url, 'whoAmI', { token: mistake });
      await fetch(`${service.url}/nowhere`, { headers: { authorization: `Basic ${mistake}` } });
    }
    secrets.set('a mistyped password', 'mistyped-password');
    await call(service.url, 'signIn', {
      body: { usernameOrEmail: person.username, password: 'mistyped-password' },
    });
    await service.stop();

    const { stdout, stderr } = service.output();
    assert.ok(stderr.split('\n').length > 10, 'requests were logged');
    for (const line of stderr.split('\n').filter((each) => each !== '')) JSON.parse(line);
    for (const [what, value] of secrets) {
      // A code has six digits, and so have some times: it counts where it stands alone.
      const found = /^\d+$/.test(value)
        ? new RegExp(`(?<![\\d.])${value}(?!\\d)`).test(stdout + stderr)
        : (stdout + stderr).includes(value);
      assert.ok(!found, `the ${what} is in the log`);
    }
    assert.doesNotMatch(stderr, /authorization/i);
  });
});
