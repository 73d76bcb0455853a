import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { readPage, tableCells } from './harness/markdown.ts';
import { pattern, type RunBlock, runPages, sessions } from './harness/pages.ts';
import { type RunningService, startService } from './harness/service.ts';

const root = join(import.meta.dirname, '..');
const pages = sessions.commandLine.map((path) => readPage(root, path));
const beginning = readPage(root, 'docs/getting-started.md');
/** What the page promises to somebody who has never seen the project. */
const promisedSeconds = 600;

describe('the pages that use the command line', () => {
  let service: RunningService;
  let folder: string;
  let done: readonly RunBlock[] = [];
  before(async () => {
    service = await startService();
    // The folder as a reader has it after npm install and npm start.
    folder = await mkdtemp(join(tmpdir(), 'millrace-docs-'));
    await symlink(service.dataDirectory, join(folder, 'data'));
    await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
  });
  after(async () => {
    await service.remove();
    await rm(folder, { recursive: true, force: true });
  });

  it('say what their commands print, pasted one after the other into one shell', {
    timeout: 720_000,
  }, async () => {
    done = await runPages(pages, { folder, url: service.url, milliseconds: 700_000 });
    assert.ok(done.length > 20, `${done.length} blocks are run`);
    for (const { block, output, expected } of done) {
      if (expected === undefined) assert.equal(output, '', `${block.place} prints nothing`);
      else assert.match(output, pattern(expected), `${block.place} prints what follows it`);
    }
  });

  it('have programs that compile, strictly', { timeout: 120_000 }, async () => {
    const project = join(folder, 'shop');
    const programs = (await readdir(project, { recursive: true })).filter((path) => path.endsWith('.ts'));
    for (const name of ['shop.ts', 'check.ts', 'check.test.ts', 'tasks/counter.ts'])
      assert.ok(programs.includes(name), name);
    const compilerOptions = {
      module: 'esnext',
      moduleResolution: 'bundler',
      lib: ['esnext', 'dom'],
      noUnusedLocals: true,
    };
    const settings = { extends: join(root, 'tsconfig.json'), compilerOptions, include: [], files: programs };
    await writeFile(join(project, 'tsconfig.json'), JSON.stringify(settings));
    const compiler = join(root, 'node_modules/.bin/tsc');
    const { stdout } = await promisify(execFile)(compiler, ['-p', project]).catch((error) => error);
    assert.equal(stdout, '');
  });

  it('lead from the clone to a task and a query in under ten minutes', (test) => {
    const [heads, ...recorded] = tableCells(beginning, 'times');
    assert.deepEqual(heads, ['step', 'seconds']);
    assert.deepEqual(
      recorded.map(([step]) => step),
      [...beginning.text.matchAll(/^## (\d\. .+)$/gm)].map(([, heading]) => heading),
      'every step has its time',
    );
    const sum = recorded.reduce((seconds, [, each]) => seconds + Number(each), 0);
    assert.ok(sum > 0 && sum < promisedSeconds, `${sum} seconds are recorded`);
    const own = done.filter(({ block }) => block.place.startsWith(beginning.path));
    for (const { block, milliseconds } of own)
      test.diagnostic(`${block.place} took ${(milliseconds / 1000).toFixed(1)} s`);
    const measured = own.reduce((total, { milliseconds }) => total + milliseconds, 0) / 1000;
    // Getting it and starting it are not part of this run, so what is recorded for them counts.
    const before = recorded.slice(0, 2).reduce((seconds, [, each]) => seconds + Number(each), 0);
    test.diagnostic(`all steps: ${measured.toFixed(1)} s, and ${before} s to get and start it`);
    assert.ok(own.length > 0 && measured + before < promisedSeconds);
  });
});
