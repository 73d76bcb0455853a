import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../harness/waiting.ts';
import { openShop, type Shop } from './shop.ts';
import { run, start } from './terminal.ts';

let shop: Shop;
let project: Shop;
before(async () => {
  shop = await openShop();
  const directory = join(shop.directory, 'project');
  await mkdir(directory);
  project = { ...shop, directory };
});
after(() => shop.remove());

const file = (path: string) => join(project.directory, path);

async function eventuallyPrints(words: string[], pattern: RegExp): Promise<string> {
  return eventually(`${words.join(' ')} prints ${pattern}`, 60_000, async () => {
    const { stdout } = await run(project, words);
    return pattern.test(stdout) ? stdout : undefined;
  });
}

describe('a project', { timeout: 600_000 }, () => {
  it('is begun, shown as a difference, and deployed once', async () => {
    const begun = await run(project, ['task', 'init', 'enrich', '--input', 'clicks', '--output', 'enriched']);
    assert.equal(begun.code, 0, begun.stderr);
    const declared = JSON.parse(await readFile(file('millrace.json'), 'utf8'));
    const schema = JSON.parse(await readFile(file(declared.$schema), 'utf8'));
    assert.deepEqual(
      Object.keys(declared).filter((name) => !(name in schema.properties)),
      [],
    );
    assert.equal((await run(project, ['task', 'init', 'enrich'])).code, 1);

    const shown = await run(project, ['deploy', '--dry-run', '--json']);
    const changes = shown.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    assert.deepEqual(
      changes.map(({ kind, name, what }) => [kind, name, what]),
      [
        ['topic', 'clicks', 'new'],
        ['topic', 'enriched', 'new'],
        ['task', 'enrich', 'new'],
      ],
    );
    assert.equal((await run(project, ['topic', 'list', '--json'])).stdout.includes('clicks'), false);
    const deployed = await run(project, ['deploy']);
    assert.equal(deployed.code, 0, deployed.stderr);
    assert.match(deployed.stderr, /Deployed enrich as version 1/);
    const again = await run(project, ['deploy']);
    assert.match(again.stderr, /Everything is as it should be/);
  });

  it('runs its task on what is published', async () => {
    const lines = ['{"user":"u","page":"/"}', '{"user":"u","page":"/"}', '{"user":"v","page":"/a"}'];
    assert.equal(
      (await run(project, ['topic', 'publish', 'clicks', '--key', '/user'], lines.join('\n'))).code,
      0,
    );
    await eventuallyPrints(['state', 'list', 'page'], /page:\/ .*\{"views":2\}/);
    await eventuallyPrints(['query', 'run', 'SELECT count(*) AS n FROM enriched'], /\n3\n/);
    await eventuallyPrints(['task', 'logs', 'enrich'], /counted/);
    const following = start(project, ['task', 'logs', 'enrich', '-f', '--json']);
    const heard = (page: string) =>
      eventually(`the log tells of ${page}`, 60_000, () =>
        following.output().stdout.includes(JSON.stringify(page).replaceAll('"', '\\"')) ? true : undefined,
      );
    await heard('/a');
    const later = '{"user":"v","page":"/later"}';
    assert.equal((await run(project, ['topic', 'publish', 'clicks', '--key', '/user'], later)).code, 0);
    await heard('/later');
    following.child.kill('SIGINT');
    const { code, stdout } = await following.ended;
    assert.equal(code, 130);
    const told = stdout.trim().split('\n');
    assert.equal(new Set(told).size, told.length, 'no line comes twice');
    assert.match((await run(project, ['task', 'list'])).stdout, /enrich +RUNNING +1/);
    const event = JSON.stringify({ Records: [] });
    const invoked = await run(project, ['task', 'invoke', 'enrich', '--event', event]);
    assert.deepEqual(JSON.parse(invoked.stdout), { batchItemFailures: [] }, invoked.stderr);
  });

  it('has versions that can be gone back to, and tasks that can be paused and deleted', async () => {
    const source = await readFile(file('tasks/enrich.ts'), 'utf8');
    await writeFile(file('tasks/enrich.ts'), `${source}\nconsole.log('second');\n`);
    const shown = await run(project, ['deploy', '--dry-run']);
    assert.match(shown.stderr, /~ task enrich/);
    assert.match((await run(project, ['task', 'deploy', 'enrich'])).stderr, /version 2/);
    assert.match((await run(project, ['task', 'versions', 'enrich'])).stdout, /2 +yes/);
    const back = await run(project, ['task', 'rollback', 'enrich']);
    assert.match(back.stdout, /version 1/, back.stderr);
    assert.equal((await run(project, ['task', 'rollback', 'enrich'])).code, 1);
    assert.equal((await run(project, ['task', 'activate', 'enrich', '2'])).code, 0);
    assert.match((await run(project, ['task', 'pause', 'enrich'])).stdout, /PAUS/);
    assert.equal((await run(project, ['task', 'resume', 'enrich'])).code, 0);
    assert.equal((await run(project, ['task', 'dead-letters', 'enrich'])).code, 0);
    assert.equal((await run(project, ['task', 'status', 'nothing'])).code, 4);
    assert.equal((await run(project, ['task', 'delete', 'enrich', '--yes'])).code, 0);
  });

  it('says where the code is wrong, and deploys nothing then', async () => {
    const source = await readFile(file('tasks/enrich.ts'), 'utf8');
    await writeFile(file('tasks/enrich.ts'), 'export const handler = ;');
    const failed = await run(project, ['deploy']);
    assert.equal(failed.code, 1);
    assert.match(failed.stderr, /^tasks\/enrich\.ts:1:24: Unexpected/m);
    await mkdir(file('below'));
    const below = { ...project, directory: file('below') };
    assert.match((await run(below, ['deploy'])).stderr, /^tasks\/enrich\.ts:1:24: Unexpected/m);
    await writeFile(file('tasks/enrich.ts'), source);
  });

  it('is not needed for code anywhere, whatever runs it', async () => {
    await writeFile(
      join(shop.directory, 'fails.ts'),
      "export const handler = () => { throw new Error('boom'); };",
    );
    const code = ['--code', join(shop.directory, 'fails.ts')];
    const deployed = await run(project, ['task', 'deploy', 'fails', ...code, '--runtime', 'nodejs24_x']);
    assert.match(deployed.stderr, /Deployed fails as version 1/);
    const invoked = await run(project, ['task', 'invoke', 'fails']);
    assert.equal(invoked.code, 1);
    assert.match(invoked.stderr, /error: Error: boom\n$/);
    const perl = await run(project, ['task', 'deploy', 'fails', ...code, '--runtime', 'PERL']);
    assert.equal(perl.code, 2);
    assert.match(perl.stderr, /"PERL" is not one of NODEJS20_X, .*PROVIDED\.\nusage: /);
    const both = await run(project, ['task', 'deploy', 'enrich', '--runtime', 'PYTHON3']);
    assert.equal(both.code, 2);
    assert.match(both.stderr, /--runtime goes with --code: millrace\.json describes enrich/);
  });
});

describe('millrace dev', { timeout: 600_000 }, () => {
  it('deploys at once and again on every save, through mistakes, until ctrl-C', async () => {
    const developing = start(project, ['dev', '--no-serve']);
    const told = (pattern: RegExp) =>
      eventually(`dev says ${pattern}`, 60_000, () => {
        assert.equal(developing.child.exitCode, null, developing.output().stderr);
        return pattern.test(developing.output().stderr) ? true : undefined;
      });
    try {
      await told(/Deployed enrich as version \d+[\s\S]*watching for changes/);
      const source = await readFile(file('tasks/enrich.ts'), 'utf8');
      await writeFile(file('tasks/enrich.ts'), 'export const handler = ;');
      await told(/Unexpected[\s\S]*watching for changes/);
      await writeFile(file('tasks/part.ts'), "export const part = 'imported';\n");
      await writeFile(
        file('tasks/enrich.ts'),
        `import { part } from './part.ts';\nconsole.log(part);\n${source}`,
      );
      await told(/Unexpected[\s\S]*Deployed enrich as version \d+[\s\S]*watching for changes/);
      await writeFile(file('tasks/part.ts'), "export const part = 'imported again';\n");
      await told(/Unexpected[\s\S]*Deployed enrich[\s\S]*watching for changes[\s\S]*Deployed enrich/);
    } finally {
      developing.child.kill('SIGINT');
    }
    assert.equal((await developing.ended).code, 130);
  });

  it('serves by itself, and the service ends with it', async () => {
    const variables = { MILLRACE_DATA_DIR: join(shop.directory, 'own'), MILLRACE_LOG_LEVEL: 'warn' };
    const own = { ...project, environment: { ...project.environment, ...variables } };
    const developing = start(own, ['dev', '--port', '0']);
    try {
      const url = await eventually('the service runs', 60_000, () => {
        assert.equal(developing.child.exitCode, null, developing.output().stderr);
        return /The service is at (\S+)\.\n/.exec(developing.output().stderr)?.[1];
      });
      assert.equal((await fetch(`${url}/livez`)).status, 200);
      developing.child.kill('SIGINT');
      assert.equal((await developing.ended).code, 130);
      await assert.rejects(fetch(`${url}/livez`));
    } finally {
      developing.child.kill('SIGTERM');
    }
  });
});
