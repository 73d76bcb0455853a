import { execFile } from 'node:child_process';
import { access, constants } from 'node:fs/promises';
import { delimiter, join } from 'node:path';

/** bubblewrap on this host, found to work. */
export interface Bubblewrap {
  /** Absolute. */
  readonly path: string;
}

/** The namespaces that every sandbox of ours is made of. */
export const sandboxNamespaces = [
  '--unshare-user',
  '--unshare-pid',
  '--unshare-ipc',
  '--unshare-uts',
  '--unshare-net',
  '--unshare-cgroup-try',
] as const;

const probeMilliseconds = 5000;

/**
 * Finds bubblewrap and tries it: many hosts have the program and forbid the namespaces it needs, above all
 * inside a container. Undefined where it cannot be used.
 */
export async function probeBubblewrap(
  search: string | undefined = process.env.PATH,
): Promise<Bubblewrap | undefined> {
  const path = await find('bwrap', search);
  if (path === undefined) return undefined;
  // The program itself is the one thing that surely is there to be run inside.
  const tried = [
    ...sandboxNamespaces,
    '--die-with-parent',
    '--new-session',
    '--clearenv',
    '--ro-bind',
    '/',
    '/',
    '--proc',
    '/proc',
    '--dev',
    '/dev',
    '--tmpfs',
    '/tmp',
    '--',
    path,
    '--version',
  ];
  return (await succeeds(path, tried)) ? { path } : undefined;
}

async function find(name: string, search = ''): Promise<string | undefined> {
  for (const folder of search.split(delimiter)) {
    if (!folder.startsWith('/')) continue;
    const path = join(folder, name);
    const usable = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (usable) return path;
  }
  return undefined;
}

function succeeds(path: string, parameters: readonly string[]): Promise<boolean> {
  return new Promise((resolve) => {
    execFile(path, parameters, { timeout: probeMilliseconds, killSignal: 'SIGKILL', env: {} }, (error) =>
      resolve(error === null),
    );
  });
}
