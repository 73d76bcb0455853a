/**
 * The command line of a bubblewrap sandbox: an empty file system that gets the programs of the host
 * read-only, the code, and a small tmp; namespaces of its own; no capability and no way to gain one.
 */
import { existsSync, lstatSync, readlinkSync } from 'node:fs';
import { sharedMemory, temporarySpace } from './limits.ts';

export interface Mount {
  readonly source: string;
  readonly target: string;
}

export interface Sandbox {
  /** Of bubblewrap. */
  readonly path: string;
  /** Of setpriv: needed by a service that is root, to become somebody else half way. */
  readonly setpriv?: string | undefined;
  /** Whether this bubblewrap can forbid further user namespaces inside. */
  readonly sealsNamespaces: boolean;
}

export interface SandboxedCommand {
  readonly sandbox: Sandbox;
  readonly network: 'own' | 'host';
  readonly mounts: readonly Mount[];
  /** The user to become on the host, where the service is root. */
  readonly userId?: number | undefined;
  readonly command: readonly string[];
}

/** Where things are inside. */
export const inside = {
  task: '/var/task',
  temporary: '/tmp',
  node: '/opt/millrace/node',
  bootstraps: '/opt/millrace/bootstraps',
  java: '/opt/millrace/java',
  sockets: '/run/millrace',
} as const;

/** The user inside; on the host it is another. */
const insideUser = '1000';

export function sandboxCommand(options: SandboxedCommand): string[] {
  const { sandbox, mounts, userId } = options;
  if (userId === undefined || sandbox.setpriv === undefined) return innerCommand(options, mounts);
  // A service that is root may hold its data where nobody else can go. So root makes a view in which just
  // the needed folders lie in the open, turns into the user there, and that user builds the sandbox. The
  // view has process numbers of its own because root without capabilities, which is what the outer program
  // becomes, may not send a signal to the user; the kernel ends a whole namespace without asking.
  const shown = mounts.map(({ target }, index) => ({ source: `/run/${index}`, target }));
  const id = String(userId);
  return [
    sandbox.path,
    '--die-with-parent',
    '--unshare-pid',
    ...['--dev-bind', '/', '/', '--tmpfs', '/run'],
    ...mounts.flatMap(({ source }, index) => ['--ro-bind', source, `/run/${index}`]),
    ...['--', sandbox.setpriv, '--reuid', id, '--regid', id, '--clear-groups'],
    ...['--inh-caps=-all', '--bounding-set=-all', '--no-new-privs', '--'],
    ...innerCommand(options, shown),
  ];
}

function innerCommand({ sandbox, network, command }: SandboxedCommand, mounts: readonly Mount[]): string[] {
  return [
    sandbox.path,
    ...['--unshare-user', '--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try'],
    ...(network === 'own' ? ['--unshare-net'] : []),
    ...(sandbox.sealsNamespaces ? ['--disable-userns'] : []),
    ...['--die-with-parent', '--new-session', '--hostname', 'task'],
    ...['--uid', insideUser, '--gid', insideUser, '--cap-drop', 'ALL'],
    ...systemFolders(),
    // A tmpfs that is not made read-only could be filled with all the memory of the host.
    ...['--proc', '/proc', '--dev', '/dev', '--remount-ro', '/dev'],
    ...['--size', String(sharedMemory), '--tmpfs', '/dev/shm'],
    ...['--size', String(temporarySpace), '--tmpfs', inside.temporary],
    ...mounts.flatMap(({ source, target }) => ['--ro-bind', source, target]),
    ...(existsSync('/usr/local') ? ['--remount-ro', '/usr/local'] : []),
    ...['--remount-ro', '/', '--chdir', inside.task, '--'],
    ...command,
  ];
}

/** The programs and libraries of the host. /usr/local is what its owner put there, so it is left out. */
function systemFolders(): string[] {
  const folders = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64'].flatMap((folder) => {
    const entry = lstatSync(folder, { throwIfNoEntry: false });
    if (entry === undefined) return [];
    return entry.isSymbolicLink()
      ? ['--symlink', readlinkSync(folder), folder]
      : ['--ro-bind', folder, folder];
  });
  const hidden = existsSync('/usr/local') ? ['--tmpfs', '/usr/local'] : [];
  return [...folders, ...hidden, ...systemFiles()];
}

/** Settings that programs need to find libraries, check certificates and know the time. */
function systemFiles(): string[] {
  return [
    '/etc/ld.so.cache',
    '/etc/ld.so.conf',
    '/etc/ld.so.conf.d',
    '/etc/alternatives',
    '/etc/ssl/certs',
    '/etc/ssl/openssl.cnf',
    '/etc/pki/tls/certs',
    '/etc/ca-certificates',
    '/etc/nsswitch.conf',
  ].flatMap((path) => (existsSync(path) ? ['--ro-bind', path, path] : []));
}
