import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The packages as a stranger has them: installed from their tarballs, with what they need from the registry. */
export interface Installation {
  /** For whatever else a test writes. */
  readonly folder: string;
  /** The tarballs. */
  readonly archives: readonly string[];
  /** Where they are installed. */
  readonly app: string;
  remove(): void;
}

const stepMilliseconds = 400_000;

export function install(): Installation {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-packages-'));
  // Other users come here as well, in the tests about them.
  chmodSync(folder, 0o755);
  const remove = () => rmSync(folder, { recursive: true, force: true });
  try {
    const built = join(folder, 'built');
    run(process.execPath, [join(import.meta.dirname, '../build.ts'), built, '--pack'], folder);
    const archives = readdirSync(built)
      .filter((name) => name.endsWith('.tgz'))
      .map((name) => join(built, name));
    const app = join(folder, 'app');
    addPackages(app, archives);
    return { folder, archives, app, remove };
  } catch (error) {
    remove();
    throw error;
  }
}

/** Installs packages in a folder that has nothing else. */
export function addPackages(folder: string, packages: readonly string[]): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{"private":true,"type":"module"}');
  run('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--silent', ...packages], folder);
}

/** What is around is passed on, because npm needs the proxies and certificates of the machine; npm's own is not. */
function run(command: string, words: readonly string[], cwd: string): void {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_|^NODE_/.test(name)));
  const certificates = process.env.NODE_EXTRA_CA_CERTS;
  execFileSync(command, words, {
    cwd,
    stdio: ['ignore', 'inherit', 'inherit'],
    timeout: stepMilliseconds,
    env: certificates === undefined ? env : { ...env, NODE_EXTRA_CA_CERTS: certificates },
  });
}
