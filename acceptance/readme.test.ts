import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { listOperations, type Operation, roleIncludes } from '@millrace/contract';
// These are tests of what the pages say about the code, and so the only ones here that look into it.
import { describeSettings, readSettings } from '../packages/server/src/config/settings.ts';
import { pendingOperations } from '../packages/server/src/http/pending.ts';
import { signedPath } from '../packages/server/src/objects/files/signature.ts';
import { parseObjectsLocation } from '../packages/server/src/objects/location.ts';
import { contract } from './harness/client.ts';
import { anchorsOf, type Block, localLinks, readPage, tableCells } from './harness/markdown.ts';
import { type RunningService, startService, within } from './harness/service.ts';
import { eventually } from './harness/waiting.ts';

const root = join(import.meta.dirname, '..');
/** In the order in which their commands build on each other. */
const read = [
  'README.md',
  'docs/topics-and-publishing.md',
  'docs/state.md',
  'docs/identity.md',
  'docs/organizations.md',
  'docs/errors.md',
  'docs/operating.md',
  'docs/security.md',
  'docs/architecture.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
];
const decisions = readdirSync(join(root, 'docs/adr')).map((name) => `docs/adr/${name}`);
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

  it('print what the pages say, pasted one after the other into one shell', async () => {
    const runnable = blocks.filter((block) => block.language === 'sh' && block.directive === undefined);
    assert.ok(runnable.length > 15, `${runnable.length} blocks are run`);
    const session = runnable.map(
      (block) => `${block.text.replace(/^URL=.*$/m, `URL=${service.url}`)}\nprintf '\\0'\n`,
    );
    const { code, stdout, stderr } = await bash(session.join(''), folder);
    const outputs = stdout.replaceAll('\r', '').split('\0');
    const last = runnable[outputs.length - 1];
    assert.equal(code, 0, `${last?.place ?? 'the last block'} fails: ${outputs.at(-1)}${stderr}`);
    for (const [index, block] of runnable.entries()) {
      const expected = answerOf(block);
      const output = outputs[index]?.trim() ?? '';
      if (expected === undefined) assert.equal(output, '', `${block.place} prints nothing`);
      else assert.match(output, pattern(expected), `${block.place} prints what follows it`);
    }
  });

  it('are run by the checks of every change where a test cannot run them', () => {
    const unrun = blocks.filter((block) => block.language === 'sh' && block.directive !== undefined);
    for (const block of unrun) {
      assert.match(block.directive ?? '', /^ci\. [A-Z][\s\S]+\.$/, `${block.place} says why it is not run`);
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
      env: { ...plainEnvironment(), MILLRACE_PORT: '0', MILLRACE_DATA_DIR: dataDirectory },
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

  it('list every decision', () => {
    const index = page('docs/adr/README.md').text;
    for (const path of decisions)
      assert.ok(path.endsWith('README.md') || index.includes(path.slice(9)), path);
  });

  it('name only settings that exist', () => {
    const engines = readFileSync(join(root, 'tools/test-engines.ts'), 'utf8');
    for (const { path, text } of pages) {
      for (const [name] of text.matchAll(/MILLRACE_[A-Z0-9_]*[A-Z0-9]/g)) {
        const answer = readSettings({ [name]: '' });
        const unknown =
          'refusals' in answer && answer.refusals.some((each) => / is not a setting/.test(each));
        assert.ok(!unknown || engines.includes(name), `${path} mentions ${name}`);
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
    const said = `${all} operations. ${all - pendingOperations.length} of them work; the other ${pendingOperations.length} `;
    assert.ok(text.includes(said), said);
  });

  it('mention only paths that the contract has', () => {
    const shapes = listOperations(contract).map(
      ({ path }) => new RegExp(`^${path.replace(/\{\w+\}/g, '[^/]+').replace('*', '.*')}/?$`),
    );
    for (const each of pages) {
      for (const [path] of each.text.matchAll(/\/v1\/[\w{}./-]*[\w}/]/g)) {
        const known = path === signedPath || shapes.some((shape) => shape.test(path));
        assert.ok(known, `${each.path} mentions ${path}`);
      }
    }
  });
});

function accessRow({ id, method, path, access }: Operation): string[][] {
  const pending: readonly string[] = pendingOperations;
  if (access.kind !== 'organization' || pending.includes(id)) return [];
  const { role, apiKeyRole } = access;
  const capped = apiKeyRole === undefined ? 'yes' : `yes, as ${apiKeyRole} at most`;
  const withKey = apiKeyRole !== undefined && !roleIncludes(apiKeyRole, role) ? 'no' : capped;
  return [[`\`${id}\``, `\`${method} ${path}\``, role, withKey]];
}

/** The block of output that follows a block of commands. */
function answerOf(block: Block): string | undefined {
  const next = blocks[blocks.indexOf(block) + 1];
  const isNext = next?.language === 'text' && next.place.split(':')[0] === block.place.split(':')[0];
  return isNext ? next.text.trim() : undefined;
}

/** Matches exactly this text, with anything for each `...`. */
function pattern(text: string): RegExp {
  const literal = text.split('...').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${literal.join('[\\s\\S]*')}$`);
}

/** What a new shell has: not what a test runner adds. */
function plainEnvironment(): Record<string, string> {
  const { PATH = '', HOME = tmpdir() } = process.env;
  return { PATH: `${dirname(process.execPath)}:${PATH}`, HOME };
}

async function bash(script: string, cwd: string): Promise<Ended> {
  const child = spawn('bash', ['-eo', 'pipefail', '-c', script], {
    cwd,
    env: plainEnvironment(),
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  try {
    return await within(collect(child), 120_000, 'the commands of the pages did not end');
  } finally {
    if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  }
}

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function collect(child: ChildProcess): Promise<Ended> {
  let stdout = '';
  let stderr = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, stdout, stderr }));
  });
}
