/**
 * Builds and packs the packages, installs them from their tarballs in an empty folder as a stranger would,
 * with what they need from the registry, and takes the tour there.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const folder = mkdtempSync(join(tmpdir(), 'millrace-packages-'));
const built = join(folder, 'built');
const app = join(folder, 'app');
const run = (command: string, words: readonly string[], cwd: string) =>
  execFileSync(command, words, {
    cwd,
    stdio: 'inherit',
    timeout: 300_000,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, XDG_CONFIG_HOME: join(folder, 'config') },
  });

try {
  run(process.execPath, [join(import.meta.dirname, 'build.ts'), built, '--pack'], folder);
  mkdirSync(app);
  writeFileSync(join(app, 'package.json'), '{"private":true}');
  const archives = readdirSync(built).filter((name) => name.endsWith('.tgz'));
  run('npm', ['install', '--no-audit', '--no-fund', ...archives.map((name) => join(built, name))], app);
  run('npx', ['millrace', '--version'], app);
  run('npx', ['millrace', 'demo', '--events', '5000'], app);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
