import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, matchesGlob } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { startInstalled } from './service.ts';
import { walk } from './walk.ts';

const execute = promisify(execFile);
const root = join(import.meta.dirname, '../..');
const installed = '/opt/millrace';
const stepMilliseconds = 400_000;

/**
 * Few machines can build an image, so the Dockerfile is taken at its word instead: only the files that it may
 * see are copied, the commands of its first stage are run on them, and what they made is started the way the
 * image starts it. What the image adds to that, a system with bubblewrap and Python, is not checked here.
 */
describe('the image', { timeout: 900_000 }, () => {
  let folder: string;
  let steps: Step[];
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-image-'));
    steps = stepsOf(await readFile(join(root, 'deploy/Dockerfile'), 'utf8'));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  const source = () => join(folder, 'src');
  const here = (text: string) => text.replaceAll(installed, join(folder, 'opt'));
  const environment = () => ({ ...process.env, PATH: `${dirname(process.execPath)}:${process.env.PATH}` });

  it('can be built from what its ignore file leaves, and from nothing else', async () => {
    const ignored = await readFile(join(root, 'deploy/Dockerfile.dockerignore'), 'utf8');
    await copyContext(ignored.split('\n'), source());
    assert.ok(!(await readdir(source())).some((name) => name.startsWith('.') || name === 'node_modules'));
    const end = steps.findLastIndex(({ name }) => name === 'FROM');
    for (const { name, words } of steps.slice(0, end))
      if (name === 'RUN')
        await execute('/bin/sh', ['-c', here(words)], {
          cwd: source(),
          env: environment(),
          timeout: stepMilliseconds,
        });
  });

  it('serves with its own command, and ends well when told to', async () => {
    const [command = '', ...words]: string[] = JSON.parse(here(last('CMD')));
    assert.equal(command, 'node');
    const data = join(folder, 'data');
    await mkdir(data);
    const service = await startInstalled(process.execPath, words, {
      cwd: data,
      env: { PATH: environment().PATH, HOME: folder, MILLRACE_PORT: '0', MILLRACE_DATA_DIR: data },
    });
    try {
      const outbox = () => readFile(join(data, 'outbox.jsonl'), 'utf8').catch(() => '');
      await walk({ url: service.url, app: join(folder, 'opt'), outbox });
      const [, ...check]: string[] = JSON.parse(last('HEALTHCHECK').replace(/^.*?CMD /, ''));
      const port = (url: string) => ({ env: { MILLRACE_PORT: new URL(url).port } });
      await execute(process.execPath, check, port(service.url));
      assert.equal(await service.terminate(), 0, service.said());
      await assert.rejects(execute(process.execPath, check, port(service.url)));
    } finally {
      service.kill();
    }
  });

  it('runs as somebody who is not root, with the data in a volume', () => {
    assert.equal(last('USER'), 'node');
    assert.equal(last('VOLUME'), '/var/lib/millrace');
  });

  const last = (name: string) => steps.findLast((step) => step.name === name)?.words ?? '';
});

interface Step {
  readonly name: string;
  readonly words: string;
}

function stepsOf(dockerfile: string): Step[] {
  return dockerfile
    .replace(/^#.*\n/gm, '')
    .replace(/\\\n\s*/g, ' ')
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const [name = ''] = line.split(' ', 1);
      return { name, words: line.slice(name.length).trim() };
    });
}

/** The last pattern that fits a path, or a folder above it, decides. */
async function copyContext(lines: readonly string[], target: string): Promise<void> {
  const patterns = lines.filter((line) => line !== '' && !line.startsWith('#'));
  // A star of Docker's also fits names that begin with a dot.
  const fits = (path: string, pattern: string) =>
    pattern === '*' || matchesGlob(path, pattern) || matchesGlob(path, `${pattern}/**`);
  const { stdout } = await execute('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
  });
  for (const path of stdout.trim().split('\n')) {
    const pattern = patterns.findLast((each) => fits(path, each.replace(/^!/, '')));
    const chosen = pattern === undefined || pattern.startsWith('!');
    // A file may be gone that git still lists.
    if (chosen && existsSync(join(root, path))) await cp(join(root, path), join(target, path));
  }
}
