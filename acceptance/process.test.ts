import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, describe, it } from 'node:test';
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
import { type RunningService, type StartOptions, startService, within } from './harness/service.ts';
import { eventually } from './harness/waiting.ts';

/** What tests here made, so that one that fails leaves nothing behind. */
const services: RunningService[] = [];
const directories: string[] = [];
const connections: Connection[] = [];
after(async () => {
  for (const connection of connections) connection.destroy();
  await Promise.all(services.map((service) => service.remove()));
  for (const directory of directories) await rm(directory, { recursive: true, force: true });
});

async function start(options: StartOptions = {}): Promise<RunningService> {
  const service = await startService(options);
  services.push(service);
  return service;
}

async function temporaryDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'millrace-acceptance-'));
  directories.push(directory);
  return directory;
}

async function connectTo(service: RunningService): Promise<Connection> {
  const connection = await openConnection(service.url);
  connections.push(connection);
  return connection;
}

const health = 'GET /v1/health HTTP/1.1\r\nHost: a\r\n\r\n';

/** A connection with one request answered, kept for the next. */
async function keptConnection(service: RunningService): Promise<Connection> {
  const connection = await connectTo(service);
  connection.send(health);
  await connection.answered(1, 4000);
  return connection;
}

/** A sign-in whose body the server waits for: a request in hand for as long as the test likes. */
async function signInInHand(service: RunningService, body: string): Promise<Connection> {
  const connection = await connectTo(service);
  connection.send(
    `POST /v1/auth/sign-in HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nExpect: 100-continue\r\n\r\n`,
  );
  const [interim] = await connection.answered(1, 4000);
  assert.equal(interim?.status, 100);
  return connection;
}

/** Sends a signal and answers the exit code and how long the end took. */
async function endWith(service: RunningService, signal: NodeJS.Signals): Promise<[number | null, number]> {
  const began = performance.now();
  const exited = new Promise<number | null>((resolve) => service.process.once('exit', resolve));
  service.process.kill(signal);
  const code = await within(exited, 35_000, 'the service did not end');
  return [code, Math.round(performance.now() - began)];
}

describe('the process', { concurrency: 3 }, () => {
  it('says that it is ready in one line, on a free port of its choice, and is', async () => {
    const [one, other] = await Promise.all([start(), start()]);
    assert.notEqual(one.url, other.url);
    for (const service of [one, other]) {
      for (const path of ['/livez', '/readyz', '/v1/health']) {
        const answer = await read(await fetch(`${service.url}${path}`));
        assert.equal(answer.status, 200, path);
        assert.equal(answer.body.status, 'ok', path);
      }
      await service.stop();
      assert.match(service.output().stdout, /^millrace ready on http:\/\/127\.0\.0\.1:\d+\n$/);
    }
  });

  it('lets one process at a time have a data directory', async () => {
    const first = await start();
    const { dataDirectory } = first;
    const person = await newPerson(first);
    const second = await refusedStart({ MILLRACE_DATA_DIR: dataDirectory });
    assert.notEqual(second.code, 0);
    assert.equal(second.stdout, '');
    assert.equal(second.lines.length, 1);
    assert.ok(second.lines[0]?.includes(dataDirectory), `the directory is named: ${second.lines[0]}`);
    await signIn(first, person.username, password);
  });

  it('has everything it acknowledged after a crash, and sessions go on at another port', async () => {
    const service = await start();
    const person = await newPerson(service);
    const organizationName = await newOrganization(service, person);
    const key = await newApiKey(service, person.accessToken, organizationName);
    const letters = (await service.letters()).length;
    // Several write at once while the process is killed; what was acknowledged by then must be there.
    const acknowledged: string[] = [];
    const writers = Array.from({ length: 8 }, async () => {
      for (let count = 0; count < 500; count += 1) {
        const name = fresh('crash');
        const query = { organizationName: name };
        const made = await call(service.url, 'createOrganization', { token: person.accessToken, query });
        if (made.status === 200) acknowledged.push(name);
      }
    });
    const ended = Promise.allSettled(writers);
    await eventually('some writes', 10_000, () => (acknowledged.length >= 100 ? true : undefined), 2);
    await service.kill();
    await ended;

    const again = await start({ dataDirectory: service.dataDirectory });
    assert.notEqual(again.url, service.url);
    const me = await call(again.url, 'whoAmI', { token: person.accessToken });
    assert.equal(me.status, 200, 'the access token is still good');
    const names = new Set(me.body.organizations.map((each) => each.organizationName));
    for (const name of [organizationName, ...acknowledged]) assert.ok(names.has(name), name);
    const path = { organizationName };
    assert.equal((await call(again.url, 'rateLimitGet', { token: key.secret, path })).status, 200);
    const { refreshToken } = person;
    const refreshed = await call(again.url, 'signInRefreshToken', { body: { refreshToken } });
    assert.ok(refreshed.body.result);
    await signIn(again, person.email, password);
    assert.equal((await again.letters()).length, letters);
  });

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    it(`ends at once on ${signal} when idle, whatever connections are open`, async () => {
      const service = await start();
      for (let count = 0; count < 5; count += 1) {
        await connectTo(service);
        await keptConnection(service);
      }
      const [code, took] = await endWith(service, signal);
      assert.equal(code, 0);
      assert.ok(took < 3000, `it took ${took} ms`);
    });
  }

  it('finishes what it has in hand on SIGTERM, refuses what is new, and then ends at once', async () => {
    // Long enough to tell an end that waits for this limit from one that does not.
    const service = await start({ environment: { MILLRACE_SHUTDOWN_SECONDS: '6' } });
    const person = await newPerson(service);
    const body = JSON.stringify({ usernameOrEmail: person.username, password });
    const [inHand, kept] = [await signInInHand(service, body), await keptConnection(service)];
    const ended = endWith(service, 'SIGTERM');
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
    kept.send(health);
    const [, late] = await kept.answered(2, 4000);
    assert.ok(late === undefined ? kept.isClosed() : late.status === 503);

    inHand.send(body);
    const [, answer] = await inHand.answered(2, 8000);
    const answered = performance.now();
    assert.equal(answer?.status, 200, 'the request in hand is answered');
    assert.ok(answer.text.includes('accessToken'));
    const [code] = await ended;
    assert.equal(code, 0);
    const waited = Math.round(performance.now() - answered);
    assert.ok(waited < 3000, `it ended ${waited} ms after its last answer`);
  });

  it('does not wait longer than it may for what is in hand', async () => {
    const service = await start({ environment: { MILLRACE_SHUTDOWN_SECONDS: '1' } });
    await signInInHand(service, '{}');
    const [code, took] = await endWith(service, 'SIGTERM');
    assert.equal(code, 0);
    assert.ok(took < 4000, `it took ${took} ms`);
  });

  it('keeps its files from other users of the machine', async () => {
    const parent = await temporaryDirectory();
    const shared = join(parent, 'shared');
    await mkdir(shared, { mode: 0o755 });
    const open: string[] = [];
    for (const dataDirectory of [join(parent, 'not', 'yet'), shared]) {
      const service = await start({ dataDirectory });
      await newPerson(service);
      const entries = await readdir(dataDirectory, { recursive: true });
      assert.ok(entries.includes('outbox.jsonl'));
      for (const entry of dataDirectory === shared ? entries : ['.', ...entries]) {
        const { mode } = await stat(join(dataDirectory, entry));
        // What lies in a folder that nobody else may enter is out of reach, whatever its own mode.
        if ((mode & 0o007) !== 0 && (await mayBeEntered(dataDirectory, dirname(entry))))
          open.push(`${(mode & 0o777).toString(8)} ${entry}`);
      }
    }
    assert.deepEqual(open, [], 'what any user of the machine may read');
  });
});

/** Whether every folder from the data directory down to this one lets others in. */
async function mayBeEntered(dataDirectory: string, folder: string): Promise<boolean> {
  if (folder === '.') return true;
  const { mode } = await stat(join(dataDirectory, folder));
  return (mode & 0o001) !== 0 && (await mayBeEntered(dataDirectory, dirname(folder)));
}

describe('a start that cannot be', { concurrency: 3 }, () => {
  const secret = 'hunter2-is-secret';

  /** Holds that each line is a sentence for a person, and none repeats what may be secret. */
  function isRefused(refused: RefusedStart, ...names: string[]): void {
    const said = refused.lines.join('\n');
    assert.equal(refused.code, 78, said);
    assert.equal(refused.stdout, '', said);
    assert.equal(refused.lines.length, names.length, said);
    for (const line of refused.lines) assert.match(line, /^millrace: .+\.$/);
    for (const name of names) assert.ok(said.includes(name), `${name} is named: ${said}`);
    assert.doesNotMatch(said, /node:internal|\bat .+:\d+:\d+|Error:/);
    assert.ok(!said.includes(secret), 'what may be secret is not repeated');
  }

  it('is told of all bad values at once, each in a sentence that names its setting', async () => {
    const bad = {
      MILLRACE_FOO: 'x',
      MILLRACE_PORT: '65536',
      MILLRACE_HOST: '',
      MILLRACE_LOG_LEVEL: 'loud',
      MILLRACE_SIGN_UP: 'yes',
      MILLRACE_PUBLIC_URL: 'ftp://example.com',
      MILLRACE_CORS_ORIGINS: 'https://app.example/path',
      MILLRACE_LIMIT_REQUEST_BYTES: '0',
      MILLRACE_ACCESS_TOKEN_SECONDS: '1.5',
      MILLRACE_DATABASE_URL: `mysql://millrace:${secret}@db.example/millrace`,
      MILLRACE_MAIL_URL: `http://millrace:${secret}@mail.example`,
      MILLRACE_OBJECTS_URL: `https://millrace:${secret}@objects.example/bucket`,
      MILLRACE_MAIL_FROM_FILE: `/nowhere/${secret}`,
    };
    isRefused(await refusedStart(bad), ...Object.keys(bad));
  });

  const lateRefusals: [string, string][] = [
    ['MILLRACE_HOST', '203.0.113.7'],
    ['MILLRACE_TRUST_PROXY', 'the proxy'],
    ['MILLRACE_DATABASE_URL', `postgres://millrace:${secret}@127.0.0.1:1/millrace`],
    ['MILLRACE_OBJECTS_URL', `s3://millrace:${secret}@/`],
  ];
  for (const [name, value] of lateRefusals) {
    it(`is told to look at ${name} when it is ${value.replace(secret, '...')}`, async () => {
      isRefused(await refusedStart({ [name]: value }), name);
    });
  }

  it('is told when the port is in use', async () => {
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
    const address = taken.address();
    assert.ok(address !== null && typeof address === 'object');
    try {
      isRefused(await refusedStart({ MILLRACE_PORT: String(address.port) }), 'MILLRACE_PORT');
    } finally {
      taken.close();
    }
  });

  it('is told when the data directory is a file', async () => {
    const file = join(await temporaryDirectory(), 'file');
    await writeFile(file, 'not a directory');
    isRefused(await refusedStart({ MILLRACE_DATA_DIR: file }), file);
  });
});

describe('settings', () => {
  it('that are the client’s are left alone, and those that name a file are read from it', async () => {
    const file = join(await temporaryDirectory(), 'sign-up');
    await writeFile(file, 'invite\n');
    const names = ['ENDPOINT', 'API_KEY', 'ORGANIZATION', 'PROFILE'].map((name) => `MILLRACE_${name}`);
    const environment = Object.fromEntries(names.map((name) => [name, 'x']));
    const service = await start({ environment: { ...environment, MILLRACE_SIGN_UP_FILE: file } });
    const username = fresh('guest');
    const answer = await call(service.url, 'signUp', {
      body: { username, email: `${username}@example.com`, password, tosAgreed: true, marketingAgreed: false },
    });
    assert.match(answer.body.errorMsg ?? '', /invitation/);
  });
});

describe('the log at its most talkative', () => {
  it('has no secret of anybody in it', async () => {
    const service = await start({ environment: { MILLRACE_LOG_LEVEL: 'debug' } });
    const person = await newPerson(service);
    const token = person.accessToken;
    const secrets = new Map<string, string>();
    secrets.set('password', person.password);
    secrets.set('access token', token);
    secrets.set('refresh token', person.refreshToken);
    secrets.set('sign-up code', codeIn(await lastLetter(service, person.email)));
    const organizationName = await newOrganization(service, person);
    const key = await newApiKey(service, token, organizationName);
    secrets.set('API key', key.secret);
    await call(service.url, 'rateLimitGet', { token: key.secret, path: { organizationName } });
    const { refreshToken } = person;
    const refreshed = await call(service.url, 'signInRefreshToken', { body: { refreshToken } });
    const { result } = refreshed.body;
    assert.ok(result);
    for (const [name, value] of Object.entries(result)) secrets.set(`second ${name}`, value);
    secrets.set('one-time secret', (await call(service.url, 'totpEnrol', { token })).body.secret);
    await call(service.url, 'passwordForgot', { body: { usernameOrEmail: person.username } });
    secrets.set('reset code', codeIn(await lastLetter(service, person.email)));
    // What people send by mistake is as secret as what is right.
    const mistyped = 'mistyped-password';
    await call(service.url, 'signIn', { body: { usernameOrEmail: person.username, password: mistyped } });
    secrets.set(mistyped, mistyped);
    for (const mistake of ['mr_notmykeynotmykeynotmykeynotmykeynot', 'eyJhbGciOiJub25lIn0.e30.mistaken']) {
      secrets.set(mistake, mistake);
      await call(service.url, 'whoAmI', { token: mistake });
      await fetch(`${service.url}/nowhere`, { headers: { authorization: `Basic ${mistake}` } });
    }
    await service.stop();

    const { stdout, stderr } = service.output();
    const lines = stderr.split('\n').filter((line) => line !== '');
    assert.ok(lines.length > 10, 'requests were logged');
    for (const line of lines) JSON.parse(line);
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
