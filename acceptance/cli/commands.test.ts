import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFile, stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { password } from '../harness/people.ts';
import { openShop, type Shop } from './shop.ts';
import { noTerminal, program, run, Terminal } from './terminal.ts';

let shop: Shop;
before(async () => {
  shop = await openShop();
});
after(() => shop.remove());

/** The same place with other variables. */
const having = (variables: Readonly<Record<string, string>>) => ({
  ...shop,
  environment: { ...shop.environment, ...variables },
});

describe('the exit code', { timeout: 600_000 }, () => {
  it('is 0 where it worked', async () => {
    for (const words of [['--version'], ['help'], ['topic', 'list'], ['topic', 'set', 'clicks', '--batch']])
      assert.equal((await run(shop, words)).code, 0, words.join(' '));
  });

  it('is 1 where the service or the network refused', async () => {
    const gone = await run(shop, ['topic', 'list', '--endpoint', 'http://127.0.0.1:9']);
    assert.equal(gone.code, 1);
    assert.match(gone.stderr, /could not be reached/);
    assert.equal((await run(shop, ['topic', 'publish', 'clicks', '--file', 'none'])).code, 1);
  });

  it('is 2 where it was not used as it is meant to be', async () => {
    for (const words of [
      ['nonsense'],
      ['topic', 'tail'],
      ['topic', 'list', '--colour'],
      ['state', 'set', 'a'],
      ['query', 'run'],
      ['query', 'run', ''],
      ['confirm', 'ada', ''],
    ])
      assert.equal((await run(shop, words)).code, 2, words.join(' '));
    const unasked = await run(shop, ['query', 'run']);
    assert.match(
      unasked.stderr,
      /^error: There is no statement.*\nusage: millrace query run \[<sql>\.\.\.\]/,
    );
    const empty = await run(shop, ['confirm', 'ada', '']);
    assert.match(empty.stderr, /^error: <code> is empty.*\nusage: millrace confirm <username> <code>\n$/);
    const nowhere = await run(having({ MILLRACE_ORGANIZATION: '' }), ['topic', 'list']);
    assert.equal(nowhere.code, 2);
    assert.match(nowhere.stderr, /--organization, or choose one with `millrace org use/);
  });

  it('is 3 where one is not signed in or not allowed, and 4 where there is no such thing', async () => {
    const stranger = await run(having({ MILLRACE_API_KEY: '' }), ['topic', 'list']);
    assert.equal(stranger.code, 3);
    assert.equal(stranger.stderr, 'error: You are not signed in. Run `millrace login`.\n');
    const nobody = await run(having({ MILLRACE_API_KEY: '' }), ['whoami']);
    assert.deepEqual([nobody.code, nobody.stderr], [3, stranger.stderr]);
    assert.equal((await run(having({ MILLRACE_API_KEY: 'mr_wrong' }), ['topic', 'list'])).code, 3);
    assert.equal((await run(shop, ['state', 'get', 'no', 'such'])).code, 4);
    assert.equal((await run(shop, ['topic', 'delete', 'none', '--yes'])).code, 4);
    const schemaless = await run(shop, ['topic', 'schema', 'get', 'typo']);
    assert.equal(schemaless.code, 4);
    assert.match(
      schemaless.stderr,
      /^error: The topic typo has no schema\.\n.*`millrace topic schema set typo <file>`/,
    );
  });
});

describe('with --json', { timeout: 600_000 }, () => {
  it('data is JSON on stdout and errors are JSON on stderr', async () => {
    const set = await run(shop, ['state', 'set', 'user', '1', '--attributes', '{"n":1}', '--json']);
    assert.equal(JSON.parse(set.stdout).version, 1, set.stderr);
    const listed = await run(shop, ['state', 'list', 'user', '--json']);
    assert.deepEqual(JSON.parse(listed.stdout).attributes, { n: 1 });
    const level = await run(shop, ['org', 'rate-limit', '--json']);
    assert.deepEqual(JSON.parse(level.stdout), { level: 'DEFAULT' });
    const topic = await run(shop, ['topic', 'set', 'json', '--batch', '--json']);
    assert.equal(JSON.parse(topic.stdout).topic, 'json');
    const missing = await run(shop, ['state', 'get', 'none', '--json']);
    assert.equal(missing.stdout, '');
    assert.deepEqual(JSON.parse(missing.stderr).code, 'STATE_NOT_FOUND');
    const wrong = await run(shop, ['nonsense', '--json']);
    assert.equal(JSON.parse(wrong.stderr).code, 'USAGE');
    const refused = await run(having({ MILLRACE_API_KEY: 'mr_wrong' }), ['topic', 'list', '--json']);
    assert.equal(JSON.parse(refused.stderr).status, 401);
    assert.deepEqual(
      JSON.parse((await run(shop, ['state', 'delete', 'user', '1', '--yes', '--json'])).stdout),
      {
        deleted: ['user', '1'],
      },
    );
    const findings = JSON.parse((await run(shop, ['doctor', '--json'])).stdout);
    assert.ok(findings.some(({ what, ok }: { what: string; ok: boolean }) => what === 'service' && ok));
  });
});

describe('secrets', { timeout: 600_000 }, () => {
  it('are printed once, where a key is made, and by nothing else', async () => {
    const home = having({ MILLRACE_API_KEY: '' });
    const username = (await run(having({}), ['key', 'list', '--json'])).stdout;
    const owner = JSON.parse(username.split('\n')[0] ?? '{}').ownerUsername;
    const login = await run(home, ['login', '--username', owner, '--password-stdin'], `${password}\n`);
    assert.equal(login.code, 0, login.stderr);
    const made = await run(home, ['key', 'create', 'a test', '--topic', 'clicks']);
    assert.equal(made.code, 0, made.stderr);
    const secret = made.stdout.trim();
    assert.match(secret, /^\S{20,}$/);
    assert.ok(!made.stderr.includes(secret));
    const config = await readFile(join(shop.directory, 'config/millrace/config.json'), 'utf8');
    const { session } = JSON.parse(config).profiles.default;
    const prints = [login, await run(home, ['whoami']), await run(home, ['key', 'list'])];
    for (const words of [['profile', 'list'], ['doctor'], ['whoami', '--json'], ['key', 'list', '--json']])
      prints.push(await run(home, words));
    prints.push(await run(having({ MILLRACE_API_KEY: secret }), ['topic', 'list']));
    for (const { stdout, stderr } of prints)
      for (const hidden of [secret, session.accessToken, session.refreshToken, password])
        assert.ok(!`${stdout}${stderr}`.includes(hidden));
    const kept = ['--profile', 'robot', '--api-key', shop.apiKey, '--organization', shop.organization];
    assert.equal((await run(home, ['login', ...kept])).code, 0);
    assert.equal((await run(home, ['topic', 'list', '--profile', 'robot'])).code, 0);
    assert.match((await run(home, ['profile', 'list'])).stdout, /robot .*API key/);
    assert.equal((await run(home, ['logout'])).code, 0);
    assert.equal((await run(home, ['whoami'])).code, 3);
    assert.equal((await stat(join(shop.directory, 'config/millrace/config.json'))).mode & 0o777, 0o600);
  });
});

describe('a service that is busy', { timeout: 600_000 }, () => {
  it('is asked again after as long as it wants, and a person is told of the wait', async () => {
    let asked = 0;
    const server = createServer((_request, response) => {
      asked += 1;
      response.setHeader('content-type', 'application/json');
      if (asked === 1) response.writeHead(503, { 'retry-after': '1' });
      response.end(
        asked === 1
          ? '{"status":503,"code":"OVERLOADED","detail":"The server is busy."}'
          : '{"allowUndefinedTopics":true,"topics":{},"version":7}',
      );
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    try {
      const address = server.address();
      assert.ok(address !== null && typeof address === 'object');
      const { code, stderr } = await run(having({ MILLRACE_ENDPOINT: `http://127.0.0.1:${address.port}` }), [
        'topic',
        'list',
      ]);
      assert.equal(code, 0, stderr);
      assert.match(stderr, /^The server is busy\. Trying again in 1\.0 s\.\n[\s\S]*Version 7\./);
    } finally {
      server.close();
      server.closeAllConnections();
    }
  });
});

describe('output', { timeout: 600_000 }, () => {
  it('ends quietly when its reader has had enough', async () => {
    const script = `"${process.execPath}" "${program}" help | head -n 1; echo "\${PIPESTATUS[0]}"`;
    const { stdout, stderr } = await promisify(execFile)('bash', ['-c', script], { env: shop.environment });
    assert.match(stdout, /^millrace: .*\n0\n$/);
    assert.equal(stderr, '');
  });

  it('has colours on a terminal, and none where they are not wanted', {
    skip: noTerminal ?? false,
  }, async () => {
    const colours = async (words: string[], variables: Record<string, string>, setup = '') => {
      const terminal = new Terminal(having(variables), words, setup);
      await terminal.end();
      return terminal.raw.includes('\u001b[');
    };
    assert.equal(await colours(['doctor'], {}), true);
    assert.equal(await colours(['doctor'], { NO_COLOR: '1' }), false);
    assert.equal(await colours(['doctor', '--no-color'], {}), false);
    assert.equal(await colours(['doctor'], { TERM: 'dumb' }), false);
  });

  it('has no colours in what goes to a file, also when stderr is a terminal', {
    skip: noTerminal ?? false,
  }, async () => {
    const words = ['doctor'];
    const file = join(shop.directory, 'doctor.txt');
    const terminal = new Terminal(shop, words, `exec > '${file}';`);
    await terminal.end();
    const text = await readFile(file, 'utf8');
    assert.match(text, /ok +node/);
    assert.ok(!text.includes('\u001b'), text);
  });
});
