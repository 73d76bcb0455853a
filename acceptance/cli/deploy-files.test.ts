import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
// A test of what the files say about the service, so it looks into it.
import { readSettings } from '../../packages/server/src/config/settings.ts';

const root = join(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const dockerfile = read('deploy/Dockerfile');
const compose = read('deploy/compose.yaml');
const unit = read('deploy/millrace.service');
const command = 'node_modules/@millrace/cli/bin/millrace.mjs';

function settingsIn(text: string): Record<string, string> {
  const found = text.replace(/^\s*#.*$/gm, '').matchAll(/(MILLRACE_[A-Z_]+)(?:=|: )([^\s\\]+)/g);
  return Object.fromEntries([...found].map(([, name = '', value = '']) => [name, value]));
}

describe('the files to deploy with', () => {
  it('have settings that the service takes', () => {
    for (const text of [dockerfile, compose, unit]) {
      const settings = settingsIn(text);
      assert.ok(Object.keys(settings).length > 0);
      const answer = readSettings(settings);
      assert.ok('settings' in answer, JSON.stringify(answer));
    }
  });

  it('give the service ten seconds more to end than it takes', () => {
    const answer = readSettings({});
    assert.ok('settings' in answer);
    const seconds = answer.settings.shutdownSeconds + 10;
    assert.match(compose, new RegExp(`stop_grace_period: ${seconds}s`));
    assert.match(unit, new RegExp(`TimeoutStopSec=${seconds}`));
  });

  it('start a command that a package has, with Node as the first process', () => {
    assert.ok(existsSync(join(root, 'packages/cli', command.slice('node_modules/@millrace/cli/'.length))));
    assert.match(
      dockerfile,
      new RegExp(`^CMD \\["node", "--disable-sigusr1", "/opt/millrace/${command}", "serve"\\]$`, 'm'),
    );
    assert.match(
      unit,
      new RegExp(`^ExecStart=/usr/bin/node --disable-sigusr1 /opt/millrace/${command} serve$`, 'm'),
    );
  });

  it('use the Node that the repository has', () => {
    const { devDependencies } = JSON.parse(read('package.json'));
    const major = devDependencies.node.split('.')[0];
    for (const [, image = ''] of dockerfile.matchAll(/^FROM (\S+)/gm))
      assert.match(image, new RegExp(`^node:${major}-`));
  });

  it('copy and name only what is there', () => {
    assert.match(dockerfile, /node tools\/build\.ts dist --pack/);
    assert.match(dockerfile, /npm install --prefix \/opt\/millrace .*\.\/dist\/\*\.tgz/);
    assert.match(
      dockerfile,
      /^COPY --from=build \/opt\/millrace\/node_modules \/opt\/millrace\/node_modules$/m,
    );
    for (const path of ['tools/build.ts', 'package-lock.json', 'deploy/Dockerfile'])
      assert.ok(existsSync(join(root, path)), path);
    const [, context = '', file = ''] = /context: (\S+)\n\s+dockerfile: (\S+)/.exec(compose) ?? [];
    assert.ok(existsSync(join(root, 'deploy', context, file)));
    const ignored = read('deploy/Dockerfile.dockerignore').split('\n');
    assert.equal(
      ignored.find((line) => line !== '' && !line.startsWith('#')),
      '*',
      'nothing goes in that is not named',
    );
    const taken = ignored.filter((line) => line.startsWith('!')).map((line) => line.slice(1));
    for (const path of ['packages', 'tools', 'package.json', 'package-lock.json'])
      assert.ok(taken.includes(path), path);
  });

  it('hold data where the service may write, and nothing as root', () => {
    assert.match(dockerfile, /^USER node$/m);
    assert.ok(dockerfile.indexOf('USER node') < dockerfile.indexOf('CMD ["node", "--disable'));
    const { MILLRACE_DATA_DIR: folder = '' } = settingsIn(dockerfile);
    assert.ok(dockerfile.includes(`VOLUME ${folder}\n`) && compose.includes(`millrace:${folder}\n`));
    assert.match(unit, /^User=millrace$/m);
    assert.equal(settingsIn(unit).MILLRACE_DATA_DIR, `/var/lib/${/^StateDirectory=(.*)$/m.exec(unit)?.[1]}`);
  });

  const analyze = spawnSync('systemd-analyze', ['--version']).status === 0;
  const reason = analyze ? false : 'systemd-analyze is not on this machine';
  it('have a unit that systemd takes', { skip: reason }, async () => {
    const folder = await mkdtemp(join(tmpdir(), 'millrace-unit-'));
    try {
      const file = join(folder, 'millrace.service');
      // Where Node is differs; that it can be run is checked.
      await writeFile(file, unit.replace('/usr/bin/node', process.execPath));
      const said = execFileSync('systemd-analyze', ['verify', '--man=no', file], {
        encoding: 'utf8',
        stdio: 'pipe',
      });
      assert.doesNotMatch(said, /millrace/);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
