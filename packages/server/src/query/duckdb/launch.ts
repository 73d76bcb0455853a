import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Bubblewrap, sandboxNamespaces } from '../../platform/bubblewrap.ts';
import type { Launch } from './child.ts';
import type { RunnerOptions } from './protocol.ts';

const workerFolder = fileURLToPath(new URL('./worker', import.meta.url));
const nodeFlags = ['--no-warnings', '--max-old-space-size=256'];

/** Where everything lies inside. Nothing of the host's layout shows. */
export const insideScratch = '/scratch';
const inside = { node: '/millrace/node', worker: '/millrace/worker', lake: '/lake' };

/** Starts the parser: no files of anyone, and an empty environment. */
export function parserLaunch(bubblewrap: Bubblewrap | undefined, directory: string): Launch {
  if (bubblewrap === undefined) return plain(['parser'], directory);
  return wrapped(bubblewrap, [], ['parser']);
}

/** Starts a runner that sees the files of one organization, read-only, and its scratch folder. */
export function runnerLaunch(
  bubblewrap: Bubblewrap | undefined,
  directory: string,
  options: RunnerOptions,
): Launch {
  if (bubblewrap === undefined) return plain(['runner', JSON.stringify(options)], directory);
  const mounts = ['--ro-bind', directory, inside.lake, '--bind', options.scratch, insideScratch];
  const seen: RunnerOptions = { ...options, scratch: insideScratch };
  return wrapped(bubblewrap, [...mounts, '--chdir', inside.lake], ['runner', JSON.stringify(seen)]);
}

function plain(parameters: readonly string[], directory: string): Launch {
  return {
    command: process.execPath,
    parameters: [...nodeFlags, join(workerFolder, 'main.ts'), ...parameters],
    environment: {},
    directory,
    tellsProcessId: false,
  };
}

function wrapped(bubblewrap: Bubblewrap, mounts: readonly string[], parameters: readonly string[]): Launch {
  // What a program needs to run at all. Where distributions differ, what is there is taken.
  const system = ['/lib', '/lib64', '/usr/lib', '/usr/lib64', '/etc/ld.so.cache'].flatMap((path) =>
    existsSync(path) ? ['--ro-bind', path, path] : [],
  );
  const packages = duckdbFolder();
  return {
    command: bubblewrap.path,
    parameters: [
      ...sandboxNamespaces,
      '--die-with-parent',
      '--new-session',
      // The program itself is the first process, so that the id that is told is the program's.
      '--as-pid-1',
      '--cap-drop',
      'ALL',
      '--hostname',
      'query',
      '--clearenv',
      // The channel to the server, which is inherited; the id is told on the descriptor after it.
      ...['--setenv', 'NODE_CHANNEL_FD', '3', '--setenv', 'NODE_CHANNEL_SERIALIZATION_MODE', 'json'],
      ...['--info-fd', '4'],
      ...system,
      ...['--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp'],
      ...['--ro-bind', process.execPath, inside.node],
      ...['--ro-bind', packages, `/millrace/node_modules/${scope}`],
      ...['--ro-bind', workerFolder, inside.worker],
      ...mounts,
      '--',
      inside.node,
      ...nodeFlags,
      `${inside.worker}/main.ts`,
      ...parameters,
    ],
    environment: {},
    tellsProcessId: true,
  };
}

const scope = '@duckdb';

/** The folder with the packages of DuckDB, wherever npm has put it. */
function duckdbFolder(): string {
  const entry = createRequire(import.meta.url).resolve(`${scope}/node-api`);
  const end = entry.lastIndexOf(`${sep}${scope}${sep}`);
  return end < 0 ? dirname(entry) : entry.slice(0, end + scope.length + 1);
}
