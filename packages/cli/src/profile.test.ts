import assert from 'node:assert/strict';
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { commands } from './commands/index.ts';
import { connectionOf } from './connection.ts';
import { Output } from './output.ts';
import { parse } from './parse.ts';
import { Profiles } from './profile.ts';

let folder: string;
let count = 0;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-profile-'));
});
after(() => rm(folder, { recursive: true }));

const silent = new Output({ json: false, quiet: true, color: false });

function home(): NodeJS.ProcessEnv {
  count += 1;
  return { XDG_CONFIG_HOME: join(folder, String(count)) };
}

describe('a profile', () => {
  it('is kept in a file that only its owner may read, and nothing else is left there', async () => {
    const environment = home();
    const profiles = new Profiles(environment, undefined);
    await profiles.update({ endpoint: 'http://a', apiKey: 'secret' });
    assert.equal((await stat(profiles.file)).mode & 0o777, 0o600);
    assert.equal((await stat(dirname(profiles.file))).mode & 0o777, 0o700);
    await chmod(profiles.file, 0o644);
    assert.equal(await profiles.isOpenToOthers(), true);
    await profiles.update({ apiKey: undefined });
    assert.equal((await stat(profiles.file)).mode & 0o777, 0o600);
    assert.doesNotMatch(await readFile(profiles.file, 'utf8'), /secret/);
    assert.deepEqual(await readdir(dirname(profiles.file)), ['config.json']);
    assert.deepEqual(await new Profiles(environment, 'default').profile(), { endpoint: 'http://a' });
  });

  it('is one of several, and the one that is used can be chosen', async () => {
    const environment = home();
    await new Profiles(environment, 'staging').update({ organization: 'acme' });
    const usual = new Profiles(environment, undefined);
    assert.equal(await usual.name(), 'default');
    assert.deepEqual(await usual.profile(), {});
    await usual.use('staging');
    assert.equal(await usual.name(), 'staging');
    assert.deepEqual(await usual.profile(), { organization: 'acme' });
    await assert.rejects(usual.use('none'), /There is no profile "none"/);
    for (const odd of ['__proto__', 'constructor', 'toString'])
      assert.deepEqual(await new Profiles(environment, odd).profile(), {}, odd);
  });

  it('loses nothing when several processes change it at the same time', async () => {
    const environment = home();
    const names = Array.from({ length: 20 }, (_value, index) => `p${index}`);
    await Promise.all(names.map((name) => new Profiles(environment, name).update({ organization: name })));
    const profiles = new Profiles(environment, undefined);
    assert.deepEqual((await profiles.names()).toSorted(), names.toSorted());
  });

  it('is never written over a file that cannot be understood', async () => {
    const environment = home();
    const profiles = new Profiles(environment, undefined);
    await profiles.update({ organization: 'acme' });
    for (const text of ['', '{', '[]', '{"profiles":1}', 'null']) {
      await writeFile(profiles.file, text);
      await assert.rejects(profiles.update({ organization: 'other' }), /is not a config file of millrace/);
      assert.equal(await readFile(profiles.file, 'utf8'), text);
    }
    await writeFile(profiles.file, '{"profiles":{"default":{"endpoint":1,"session":{"accessToken":2}}}}');
    assert.deepEqual(await profiles.profile(), {});
  });
});

describe('a connection', () => {
  const environment = () => ({ ...home() });
  const given = (...words: string[]) => {
    const parsed = parse(commands, ['topic', 'list', ...words]);
    assert.ok(parsed.kind === 'command');
    return parsed.options;
  };

  it('takes flags before the environment, and that before the profile', async () => {
    const seen: { authorization: string | undefined; url: string | undefined }[] = [];
    const server = createServer((request, response) => {
      seen.push({ authorization: request.headers.authorization, url: request.url });
      response.setHeader('content-type', 'application/json').end('{"topics":{},"version":0}');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const endpoint = `http://127.0.0.1:${port}`;
    try {
      const home = environment();
      const profiles = new Profiles(home, undefined);
      await profiles.update({ endpoint, apiKey: 'kept', organization: 'kept' });
      const ask = async (flags: string[], variables: NodeJS.ProcessEnv) => {
        const client = await connectionOf(
          given(...flags),
          { ...home, ...variables },
          profiles,
          silent,
        ).client();
        await client.topics.definitions();
        const { authorization, url } = seen.at(-1) ?? {};
        return [authorization?.split(' ')[1], url?.split('/')[3]];
      };
      const variables = { MILLRACE_API_KEY: 'variable', MILLRACE_ORGANIZATION: 'variable' };
      const flags = ['--api-key', 'flag', '--organization', 'flag'];
      assert.deepEqual(await ask([], {}), ['kept', 'kept']);
      assert.deepEqual(await ask([], variables), ['variable', 'variable']);
      assert.deepEqual(await ask(flags, variables), ['flag', 'flag']);
      const empty = { MILLRACE_API_KEY: '', MILLRACE_ORGANIZATION: '', MILLRACE_ENDPOINT: '' };
      assert.deepEqual(await ask([], empty), ['kept', 'kept']);
      // Another service is not shown what was kept for this one.
      const elsewhere = `http://localhost:${port}`;
      assert.deepEqual(await ask(['--endpoint', elsewhere], {}), [undefined, 'kept']);
      assert.deepEqual(await ask([], { MILLRACE_ENDPOINT: elsewhere }), [undefined, 'kept']);
      assert.deepEqual(await ask(['--endpoint', elsewhere, '--api-key', 'flag'], {}), ['flag', 'kept']);
    } finally {
      server.close();
      server.closeAllConnections();
    }
  });

  it('refuses an endpoint that is no URL', async () => {
    const home = environment();
    for (const bad of ['nonsense', 'ftp://x', 'file:///etc/passwd', '']) {
      const profiles = new Profiles(home, undefined);
      const { endpoint } = connectionOf(given('--endpoint', bad), home, profiles, silent);
      await assert.rejects(endpoint(), /is not a URL/, bad);
    }
  });
});
