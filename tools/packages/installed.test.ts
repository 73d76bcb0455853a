import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { consumerProgram } from '../../acceptance/harness/consumer-program.ts';
import { addPackages, type Installation, install } from './installation.ts';
import { type StartedService, startInstalled } from './service.ts';
import { walk } from './walk.ts';

const execute = promisify(execFile);
const root = join(import.meta.dirname, '../..');
const nobody = 65_534;

describe('packages that are installed from their tarballs', { timeout: 900_000 }, () => {
  let installation: Installation;
  before(() => {
    installation = install();
  });
  after(() => installation?.remove());

  const inFolder = (name: string) => join(installation.folder, name);
  const environment = () => ({
    PATH: `${dirname(process.execPath)}:${process.env.PATH ?? ''}`,
    HOME: installation.folder,
    XDG_CONFIG_HOME: inFolder('config'),
    MILLRACE_PORT: '0',
  });
  const outboxOf = (data: string) => () => readFile(join(data, 'outbox.jsonl'), 'utf8').catch(() => '');
  const archivesOf = (...names: string[]) =>
    installation.archives.filter((path) => names.some((name) => path.includes(`millrace-${name}-`)));

  for (const [module, moduleResolution] of [
    ['nodenext', 'nodenext'],
    ['esnext', 'bundler'],
  ])
    it(`have declarations for strict TypeScript that resolves modules as ${moduleResolution}`, async () => {
      const folder = inFolder(`types-${moduleResolution}`);
      addPackages(folder, archivesOf('contract', 'client', 'runner'));
      await writeFile(join(folder, 'program.ts'), consumerProgram);
      const compilerOptions = {
        ...{ target: 'esnext', module, moduleResolution, strict: true, noEmit: true, skipLibCheck: false },
        ...{ exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true },
        ...{ lib: ['esnext', 'dom', 'dom.iterable', 'dom.asynciterable'], types: [] },
      };
      await writeFile(
        join(folder, 'tsconfig.json'),
        JSON.stringify({ compilerOptions, files: ['program.ts'] }),
      );
      const told = await execute(join(root, 'node_modules/.bin/tsc'), ['-p', folder]).then(
        () => '',
        (error: { stdout: string }) => error.stdout,
      );
      assert.equal(told, '');
    });

  it('serve with npx, from the sign-up to a deployed task and a query, until ctrl-C', async () => {
    const data = inFolder('data');
    const service = await startInstalled('npx', ['millrace', 'serve', '--data-dir', data], {
      cwd: installation.app,
      env: environment(),
    });
    try {
      await walk({ url: service.url, app: installation.app, outbox: outboxOf(data) });
      // npx itself ends by the signal; the service ends in order.
      await service.interrupt();
      assert.match(service.said(), /service\.stopped/);
    } finally {
      service.kill();
    }
  });

  it('keep compiled code with the person who runs the command, and nothing in strange places', async () => {
    assert.ok((await readdir(inFolder('.cache/millrace'))).length > 0);
    assert.ok(!(await readdir(join(installation.app, 'node_modules'))).includes('node_modules'));
  });

  it('keep compiled code beside the packages when the service is started itself', async () => {
    const service = await startInstalled(process.execPath, [mainOf('server', 'dist/main.js')], {
      env: { ...environment(), MILLRACE_DATA_DIR: inFolder('data-direct') },
    });
    try {
      assert.equal(await service.terminate(), 0, service.said());
    } finally {
      service.kill();
    }
    assert.ok((await readdir(join(installation.app, 'node_modules/.cache/millrace'))).length > 0);
    assert.ok(!(await readdir(join(installation.app, 'node_modules'))).includes('node_modules'));
  });

  it('show the tour with npx', async () => {
    const { stdout } = await execute('npx', ['millrace', 'demo', '--events', '2000', '--json'], {
      cwd: installation.app,
      env: environment(),
      timeout: 120_000,
    });
    assert.equal(JSON.parse(stdout).published, 2000);
  });

  it('bundle a task with the runner in less than 20 kB', async () => {
    const task = join(installation.app, 'task.ts');
    await writeFile(
      task,
      `import { log, publish, state, streamHandler } from '@millrace/runner';
export const handler = streamHandler<{ page: string }>(async ({ body, key, id }) => {
  await state.increment(['page', body.page], 'views');
  await publish('out', body, { key, id });
  log.info('seen', { page: body.page });
});
`,
    );
    const words = ['--bundle', '--minify', '--format=esm', '--platform=node', task];
    const { stdout } = await execute(join(installation.app, 'node_modules/.bin/esbuild'), words, {
      env: environment(),
    });
    assert.ok(stdout.length < 20_000, `${stdout.length} bytes`);
    const bundle = inFolder('task.mjs');
    await writeFile(bundle, stdout);
    const { handler } = await import(bundle);
    assert.equal(typeof handler, 'function');
  });

  it('run the client and the runner on the oldest Node that they claim', async (t) => {
    const old = inFolder('old');
    const { platform, arch } = process;
    try {
      addPackages(old, [`node-${platform}-${arch}@20`, ...archivesOf('contract', 'client', 'runner')]);
    } catch {
      return t.skip(`there is no Node 20 for ${platform} on ${arch} to be had`);
    }
    const data = inFolder('data-old');
    const service = await startInstalled(
      process.execPath,
      [mainOf('cli', 'bin/millrace.mjs'), 'serve', '--data-dir', data],
      { env: environment() },
    );
    try {
      await writeFile(join(old, 'program.js'), oldProgram);
      const node = join(old, `node_modules/node-${platform}-${arch}/bin/node`);
      const { stdout } = await execute(node, ['program.js', service.url, join(data, 'outbox.jsonl')], {
        cwd: old,
        env: environment(),
      });
      assert.match(stdout, /^v20\.\S+ 10 out\n$/);
      const refused = await execute(node, [mainOf('cli', 'bin/millrace.mjs'), '--version']).catch(
        (error: { stderr: string; code: number }) => error,
      );
      assert.match(refused.stderr, /millrace needs Node 26/);
    } finally {
      await service.terminate().finally(service.kill);
    }
  });

  it('serve somebody who may not write where they are installed, and who has no home', async () => {
    const isRoot = process.getuid?.() === 0;
    const data = inFolder('data-read-only');
    await mkdir(data, { mode: 0o755 });
    // A stranger may not be able to go where the Node of these tests lies.
    const node = inFolder('node');
    await cp(process.execPath, node);
    const user = isRoot ? { uid: nobody, gid: nobody } : {};
    if (isRoot) await execute('chown', [`${nobody}:${nobody}`, data]);
    await execute('chmod', ['-R', 'a-w,a+rX', installation.app]);
    const before = await namesIn(installation.app);
    let service: StartedService | undefined;
    try {
      service = await startInstalled(node, [mainOf('cli', 'bin/millrace.mjs'), 'serve'], {
        ...user,
        cwd: data,
        env: { PATH: process.env.PATH, HOME: '/nonexistent', MILLRACE_PORT: '0', MILLRACE_DATA_DIR: data },
      });
      await walk({ url: service.url, app: installation.app, outbox: outboxOf(data) });
      assert.equal(await service.terminate(), 0, service.said());
      assert.deepEqual(await namesIn(installation.app), before);
    } finally {
      service?.kill();
      await execute('chmod', ['-R', 'u+w', installation.app]);
    }
  });

  const mainOf = (name: string, path: string) => join(installation.app, 'node_modules/@millrace', name, path);
});

/** What lies in a folder and among its packages, where caches would be. */
async function namesIn(folder: string): Promise<string[]> {
  return [...(await readdir(folder)), ...(await readdir(join(folder, 'node_modules')))];
}

const oldProgram = `import { readFile } from 'node:fs/promises';
import { Millrace } from '@millrace/client';
import { publish, state, streamHandler } from '@millrace/runner';
import { testKit } from '@millrace/runner/testing';
const [endpoint, outbox] = process.argv.slice(2);
const visitor = new Millrace({ endpoint });
await visitor.ping();
const password = 'correct horse battery staple';
const form = { username: 'old', email: 'old@example.com', password, tosAgreed: true, marketingAgreed: false };
await visitor.authentication.signUp(form);
const code = /[^0-9]([0-9]{6})[^0-9]/.exec(JSON.parse(await readFile(outbox, 'utf8')).text)[1];
await visitor.authentication.confirm({ username: 'old', code });
const { result } = await visitor.authentication.signIn({ usernameOrEmail: 'old', password });
const person = visitor.withSession(result);
await person.organizations.create('acme');
const client = person.withOrganization('acme');
await client.topics.set('clicks', { batch: {} });
const publisher = client.topics.publisher('clicks', {});
for (let number = 0; number < 10; number += 1) await publisher.publish({ number });
await publisher.flush();
const answer = await client.queries.run('SELECT count(*) AS n FROM clicks');
const rows = [];
for await (const row of answer.lists()) rows.push(row);

const kit = testKit();
const handler = streamHandler(async ({ body, key, id }) => {
  await state.increment(['page', body.page], 'views');
  await publish('out', body, { key, id });
});
await kit.stream(handler, [{ body: { page: '/' } }]);
process.stdout.write(\`\${process.version} \${rows} \${kit.published[0].topic}\\n\`);
`;
