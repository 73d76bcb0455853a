import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { listOperations, type Operation, roleIncludes } from '@millrace/contract';
// These are tests of what the pages say about the code, and so the only ones here that look into it.
import { describeSettings, readSettings } from '../packages/server/src/config/settings.ts';
import { signedPath } from '../packages/server/src/objects/files/signature.ts';
import { parseObjectsLocation } from '../packages/server/src/objects/location.ts';
import { contract } from './harness/client.ts';
import { anchorsOf, localLinks, readPage, tableCells } from './harness/markdown.ts';
import {
  collect,
  fateOf,
  isRunnable,
  pattern,
  plainEnvironment,
  programName,
  runPages,
  sessions,
} from './harness/pages.ts';
import { type RunningService, startService, within } from './harness/service.ts';
import { eventually } from './harness/waiting.ts';

const root = join(import.meta.dirname, '..');
const decisions = readdirSync(join(root, 'docs/adr')).map((name) => `docs/adr/${name}`);
const documents = readdirSync(join(root, 'docs'))
  .filter((name) => name.endsWith('.md'))
  .map((name) => `docs/${name}`);
const read = ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', ...documents];
const pages = [...read, ...decisions].map((path) => readPage(root, path));
const blocks = pages.flatMap((page) => page.blocks);
const manifest: { scripts: Record<string, string> } = JSON.parse(
  readFileSync(join(root, 'package.json'), 'utf8'),
);
const checks = readFileSync(join(root, '.ci/run'), 'utf8').replaceAll(' --silent', '');

function page(path: string) {
  const found = pages.find((each) => each.path === path);
  assert.ok(found, path);
  return found;
}

describe('the commands of the pages', () => {
  let service: RunningService;
  let folder: string;
  before(async () => {
    service = await startService();
    // The folder as a reader has it after npm install and npm start.
    folder = await mkdtemp(join(tmpdir(), 'millrace-readme-'));
    await symlink(service.dataDirectory, join(folder, 'data'));
    await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
  });
  after(async () => {
    await service.remove();
    await rm(folder, { recursive: true, force: true });
  });

  it('print what the pages say, pasted one after the other into one shell', {
    timeout: 240_000,
  }, async () => {
    const run = sessions.curl.map((path) => page(path));
    const done = await runPages(run, { folder, url: service.url, milliseconds: 220_000 });
    assert.ok(done.length > 15, `${done.length} blocks are run`);
    for (const { block, output, expected } of done) {
      if (expected === undefined) assert.equal(output, '', `${block.place} prints nothing`);
      else assert.match(output, pattern(expected), `${block.place} prints what follows it`);
    }
  });

  it('are all run by a test, by the checks of every change, or said not to be and why', (test) => {
    const inSessions: readonly string[] = Object.values(sessions).flat();
    for (const { path, blocks: own } of pages) {
      for (const [index, block] of own.entries()) {
        const where = `${block.place} (${block.language})`;
        const before = own[index - 1];
        const isOutput = block.language === 'text' && before !== undefined && isRunnable(before);
        // Settings have a test of their own below.
        if (block.language === 'ini' || isOutput) continue;
        const fate = fateOf(block);
        assert.notEqual(fate.kind, 'unclear', `${where} says why it is not run`);
        if (!isRunnable(block))
          assert.equal(fate.kind, 'skipped', `${where} is no output; it says what it is`);
        if (fate.kind === 'run') assert.ok(inSessions.includes(path), `${where} is in no session`);
        if (block.language === 'ts') assert.match(programName(block), /\.ts$/, where);
        if (isRunnable(block) && fate.kind === 'skipped')
          test.diagnostic(`not run: ${block.place}: ${fate.reason}`);
      }
    }
  });

  it('are all found: every fence opens or closes a block', () => {
    for (const { path, text, blocks: own } of pages) {
      const fences = text.match(/^[ \t>]*(?:```|~~~)/gm) ?? [];
      assert.equal(fences.length, 2 * own.length, `${path} has a fence that is not read`);
    }
  });

  it('name tarballs that packing makes', () => {
    for (const { path, text } of pages) {
      for (const [tarball, name, version] of text.matchAll(/millrace-(\w+)-(\d[\w.]*)\.tgz/g)) {
        const packed = JSON.parse(readFileSync(join(root, `packages/${name}/package.json`), 'utf8'));
        assert.equal(packed.version, version, `${path} names ${tarball}`);
      }
    }
  });

  it('are run by the checks of every change where a test cannot run them', () => {
    for (const block of blocks.filter((each) => each.language === 'sh' && fateOf(each).kind === 'checks')) {
      for (const command of block.text.trim().split(/\n|&&/)) {
        const known = command.trim() === 'npm start' || checks.includes(`\nstep ${command.trim()}`);
        assert.ok(known, `${block.place}: .ci/run does not run ${command}`);
      }
    }
  });

  it('are all scripts of the package where they begin with npm run', () => {
    for (const { path, text } of pages) {
      for (const [, name = ''] of text.matchAll(/npm run ([\w:]+)/g)) assert.ok(manifest.scripts[name], path);
    }
  });

  it('start the service with npm start, which ends well when it is told to', async () => {
    const dataDirectory = await mkdtemp(join(tmpdir(), 'millrace-readme-'));
    const child = spawn('npm', ['start'], {
      cwd: root,
      env: { ...plainEnvironment(dataDirectory), MILLRACE_PORT: '0', MILLRACE_DATA_DIR: dataDirectory },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    const ended = collect(child);
    try {
      let said = '';
      child.stdout?.on('data', (text: string) => {
        said += text;
      });
      const url = await eventually(
        'npm start is ready',
        60_000,
        () => /^millrace ready on (http:\/\/127\.0\.0\.1:\d+)$/m.exec(said)?.[1],
      );
      assert.equal((await fetch(`${url}/livez`)).status, 200);
      // To the service itself, as a terminal does: npm ends on a signal without waiting for its child.
      const pid = Number(await readFile(join(dataDirectory, 'millrace.pid'), 'utf8'));
      process.kill(pid, 'SIGTERM');
      const { code, stderr } = await within(ended, 40_000, 'npm start did not end');
      assert.equal(code, 0, stderr);
    } finally {
      // The whole group: npm does not always take its children with it.
      if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      await rm(dataDirectory, { recursive: true, force: true });
    }
  });

  it('lead to paths that the service has', async () => {
    const paths = pages.flatMap(({ text }) =>
      [...text.matchAll(/`(\/(?:livez|readyz|metrics|docs|openapi|\.well-known)[^`\s]*)`/g)].map(
        (match) => match[1] ?? '',
      ),
    );
    assert.ok(paths.length > 5);
    for (const path of new Set(paths)) assert.equal((await fetch(`${service.url}${path}`)).status, 200, path);
  });
});

describe('the pages', () => {
  it('have links that lead somewhere', () => {
    for (const each of pages) {
      for (const { link, path, anchor } of localLinks(each)) {
        assert.ok(existsSync(join(root, path)), `${each.path} links to ${link}`);
        if (anchor === undefined) continue;
        assert.ok(anchorsOf(readPage(root, path)).has(anchor), `${each.path} links to ${link}`);
      }
    }
  });

  it('are all linked from the README', () => {
    const linked = new Set(localLinks(page('README.md')).map(({ path }) => path));
    for (const path of documents) assert.ok(linked.has(path), `${path} is not linked`);
  });

  it('list every decision', () => {
    const index = page('docs/adr/README.md').text;
    for (const path of decisions)
      assert.ok(path.endsWith('README.md') || index.includes(path.slice(9)), path);
  });

  it('name only settings that exist', () => {
    // Besides settings: what the tests of engines are told, and what tasks find in their environment.
    const others = ['tools/test-engines.ts', 'packages/server/src/tasks/execution/environment.ts']
      .map((path) => readFileSync(join(root, path), 'utf8'))
      .join('');
    for (const { path, text } of pages) {
      for (const [name] of text.matchAll(/MILLRACE_[A-Z0-9_]*[A-Z0-9]/g)) {
        const answer = readSettings({ [name]: '' });
        const unknown =
          'refusals' in answer && answer.refusals.some((each) => / is not a setting/.test(each));
        assert.ok(!unknown || others.includes(name), `${path} mentions ${name}`);
      }
    }
  });

  it('show settings that the service would take', () => {
    const examples = blocks.filter((block) => block.language === 'ini');
    assert.ok(examples.length > 3);
    for (const block of examples) {
      const lines = block.text.trim().split('\n');
      const environment = Object.fromEntries(lines.map((line) => line.split(/=(.*)/s).slice(0, 2)));
      const answer = readSettings(environment);
      assert.ok('settings' in answer, `${block.place}: ${JSON.stringify(answer)}`);
      const { objectsUrl } = answer.settings;
      if (objectsUrl !== undefined) assert.notEqual(parseObjectsLocation(objectsUrl).kind, 'refused');
    }
  });

  it('have a table of all settings with their defaults', () => {
    const rows = describeSettings().map(({ name, description, fallback }) => [
      `\`${name}\``,
      fallback === '' ? '' : `\`${fallback}\``,
      description,
    ]);
    const heads = ['setting', 'default', 'meaning'];
    assert.deepEqual(tableCells(page('docs/operating.md'), 'settings'), [heads, ...rows]);
  });

  it('have a table of who may do what in an organization', () => {
    const rows = listOperations(contract).flatMap((operation) => accessRow(operation));
    const heads = ['operation', 'method and path', 'lowest role', 'with an API key'];
    assert.deepEqual(tableCells(page('docs/organizations.md'), 'roles'), [heads, ...rows]);
  });

  it('say how many operations there are and how many work', () => {
    const all = listOperations(contract).length;
    const { text } = page('README.md');
    const said = `${all} operations. All of them work`;
    assert.ok(text.includes(said), said);
  });

  it('mention only paths that the contract has', () => {
    const shapes = listOperations(contract).map(
      ({ path }) => new RegExp(`^${path.replace(/\{\w+\}/g, '[^/]+').replace('*', '.*')}/?$`),
    );
    for (const each of pages) {
      // A variable of the shell stands for a name.
      const text = each.text.replace(/\$(?:\w+|\(\w+ \w+\))/g, 'name');
      for (const [path] of text.matchAll(/\/v1\/[\w{}./-]*[\w}/]/g)) {
        const known = path === signedPath || shapes.some((shape) => shape.test(path));
        assert.ok(known, `${each.path} mentions ${path}`);
      }
    }
  });
});

function accessRow({ id, method, path, access }: Operation): string[][] {
  if (access.kind !== 'organization') return [];
  const { role, apiKeyRole } = access;
  const capped = apiKeyRole === undefined ? 'yes' : `yes, as ${apiKeyRole} at most`;
  const withKey = apiKeyRole !== undefined && !roleIncludes(apiKeyRole, role) ? 'no' : capped;
  return [[`\`${id}\``, `\`${method} ${path}\``, role, withKey]];
}
