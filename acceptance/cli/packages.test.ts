import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { consumerProgram } from '../harness/consumer-program.ts';
import { within } from '../harness/service.ts';
import { eventually } from '../harness/waiting.ts';

const execute = promisify(execFile);
const root = join(import.meta.dirname, '../..');
const names = ['contract', 'client', 'runner', 'server', 'cli'];

/**
 * An empty folder in which the packed packages are installed. Packages of others are links to those of the
 * repository, so that nothing is fetched; `npm run test:packages` installs them from the registry.
 */
let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-packages-'));
  await execute(process.execPath, [join(root, 'tools/build.ts'), join(folder, 'built'), '--pack'], {
    timeout: 170_000,
  });
  const modules = join(folder, 'app/node_modules');
  await mkdir(join(modules, '.bin'), { recursive: true });
  for (const name of await readdir(join(root, 'node_modules')))
    if (name !== '@millrace' && !name.startsWith('.'))
      await symlink(join(root, 'node_modules', name), join(modules, name));
  for (const name of names) {
    const place = join(modules, '@millrace', name);
    await mkdir(place, { recursive: true });
    const archive = join(folder, 'built', `millrace-${name}-0.1.0.tgz`);
    await execute('tar', ['-xzf', archive, '-C', place, '--strip-components=1']);
  }
  await symlink('../@millrace/cli/bin/millrace.mjs', join(modules, '.bin/millrace'));
});
after(() => rm(folder, { recursive: true, force: true }));

const app = () => join(folder, 'app');
const environment = () => ({
  PATH: `${join(app(), 'node_modules/.bin')}:${dirname(process.execPath)}:${process.env.PATH ?? ''}`,
  HOME: folder,
  XDG_CONFIG_HOME: join(folder, 'config'),
});

describe('packed packages', { timeout: 600_000 }, () => {
  it('hold built code and declarations, and no tests nor sources', async () => {
    for (const name of names) {
      const place = join(app(), 'node_modules/@millrace', name);
      const manifest = JSON.parse(await readFile(join(place, 'package.json'), 'utf8'));
      assert.equal(manifest.private, undefined, name);
      assert.equal(manifest.devDependencies, undefined, name);
      for (const each of Object.values<{ types: string; default: string }>(manifest.exports))
        for (const path of [each.types, each.default])
          assert.ok((await readFile(join(place, path))).length > 0, path);
      const files = await readdir(place, { recursive: true });
      const strange = files.filter((file) => /\.(test|suite|fixture)\.|(?<!\.d)\.ts$/.test(file));
      assert.deepEqual(strange, [], name);
      assert.ok(files.includes('LICENSE'), name);
    }
  });

  it('have declarations that a program compiles with', async () => {
    await writeFile(join(app(), 'program.ts'), consumerProgram);
    const options = { target: 'esnext', module: 'nodenext', strict: true, noEmit: true, skipLibCheck: false };
    await writeFile(
      join(app(), 'tsconfig.json'),
      JSON.stringify({
        compilerOptions: { ...options, lib: ['esnext', 'dom'], types: ['node'] },
        files: ['program.ts'],
      }),
    );
    await writeFile(join(app(), 'package.json'), '{"type":"module","private":true}');
    const { stdout } = await execute(join(root, 'node_modules/.bin/tsc'), ['-p', app()]).catch(
      (error) => error,
    );
    // What other packages declare is not ours to check.
    const ours = String(stdout)
      .split('\n')
      .filter((line) => /^(\.\.\/|\/)?.*(program\.ts|@millrace)/.test(line));
    assert.deepEqual(ours, []);
  });

  it('run the command, serve, and end well when told to', async () => {
    const command = join(app(), 'node_modules/.bin/millrace');
    const { stdout } = await execute(command, ['--version'], { env: environment() });
    assert.equal(stdout, 'millrace 0.1.0\n');
    const child = spawn(command, ['serve', '--port', '0', '--data-dir', join(folder, 'data')], {
      cwd: app(),
      env: environment(),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let said = '';
    let complained = '';
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      complained += text;
    });
    const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
    try {
      const url = await eventually('it is ready', 60_000, () => {
        assert.equal(child.exitCode, null, complained);
        return /^millrace ready on (\S+)$/m.exec(said)?.[1];
      });
      assert.equal((await fetch(`${url}/readyz`)).status, 200);
      child.kill('SIGTERM');
      assert.equal(await within(ended, 40_000, 'it did not end'), 0, complained);
    } finally {
      child.kill('SIGKILL');
    }
  });

  it('show everything in the tour: tasks, state, files and queries from built code', async () => {
    const command = join(app(), 'node_modules/.bin/millrace');
    const { stdout } = await execute(command, ['demo', '--events', '1000', '--json'], {
      env: environment(),
      timeout: 120_000,
    });
    const figures = JSON.parse(stdout);
    assert.equal(figures.published, 1000);
    assert.equal(figures.answers[0].rows[0][0], '1000');
    const modules = join(app(), 'node_modules');
    assert.ok((await readdir(join(modules, '.cache/millrace'))).length > 0, 'compiled code is kept');
    assert.ok(!(await readdir(modules)).includes('node_modules'));
  });
});
