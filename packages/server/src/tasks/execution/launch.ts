/** How a process of a version is started: the command, its first words on standard input, and its ways out. */
import { chmodSync, chownSync, mkdirSync, mkdtempSync, statfsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Random, randomToken } from '../../platform/random.ts';
import type { RunnableVersion } from '../version.ts';
import type { Cgroups } from './cgroups.ts';
import { deployedVariables, exportLines, ownVariables } from './environment.ts';
import type { Host } from './host.ts';
import type { JavaClasses } from './java-classes.ts';
import {
  allowedGroupMemory,
  allowedGroupProcesses,
  allowedProcesses,
  niceness,
  openFiles,
  temporarySpace,
} from './limits.ts';
import { kindOf, type RuntimeKind } from './programs.ts';
import { RuntimeApi, type RuntimeApiEvents } from './runtime-api.ts';
import { runtimeCommand } from './runtimes.ts';
import { inside, type Mount, type SandboxedCommand, sandboxCommand } from './sandbox.ts';
import type { StagedCode } from './staging.ts';
import type { TaskGroup } from './task-group.ts';

/** What processes of this host get besides their own things. */
export interface Surroundings {
  readonly host: Host;
  readonly network: 'none' | 'open' | 'filtered';
  /** The socket that leads to the service, and the one of the proxy. */
  readonly serviceSocket: string;
  readonly proxySocket: string | undefined;
  /** Where the service is reached by a process that shares its network. */
  readonly endpoint: () => string;
  readonly javaClasses: JavaClasses;
  /** Undefined where the host lets the service make none. */
  readonly cgroups: Cgroups | undefined;
  /** Files that stand in for those of the host in /etc. */
  readonly etc: readonly Mount[];
  readonly random: Random;
}

export interface Launch {
  readonly command: readonly string[];
  readonly userId: number | undefined;
  readonly groupId: number | undefined;
  /** For Node: what its bootstrap is told first. Others speak through the Runtime API. */
  readonly start: object | undefined;
  readonly api: RuntimeApi | undefined;
  /** In the environment of everything that this process starts, unless it cannot start anything. */
  readonly marker: string | undefined;
  /** Where it starts, on the host. */
  readonly directory: string;
  /** Its folder on the host's disk, when it has no file system of its own. */
  readonly temporary: string | undefined;
  readonly sandboxed: boolean;
  readonly group: TaskGroup | undefined;
  /** What a shell reads first: the way into its group, the limits, the variables and the command to become. */
  readonly script: string;
  dispose(): Promise<void>;
}

/** The number of tmpfs, which is what many hosts have as /tmp. */
const memoryFileSystem = 0x01021994;
const ports = { runtimeApi: 9001, service: 9002, proxy: 9003 } as const;

export async function prepareLaunch(
  around: Surroundings,
  version: RunnableVersion,
  code: StagedCode,
  events: RuntimeApiEvents,
): Promise<Launch> {
  const { host } = around;
  const kind = kindOf(version.runtime);
  // All that can fail for a reason of the host comes before anything is taken that must be given back.
  const classes = kind === 'java' ? await around.javaClasses.directory() : undefined;
  const run = { kind, memoryMb: version.memoryMb, sandboxed: host.sandbox !== undefined };
  const group = around.cgroups?.make({
    memoryBytes: allowedGroupMemory({
      ...run,
      temporaryInMemory: run.sandboxed || statfsSync(host.directory).type === memoryFileSystem,
    }),
    processes: allowedGroupProcesses(run),
  });
  const folder = mkdtempSync(join(host.sockets, 'p'));
  const ownNetwork = host.sandbox !== undefined && around.network !== 'open';
  const token = randomToken(around.random, 24);
  const apiSocket = join(folder, 'a');
  let api: RuntimeApi | undefined;
  if (kind !== 'node') {
    api = await RuntimeApi.listen(ownNetwork ? { socket: apiSocket } : { prefix: token }, events);
  }
  const userId = host.users?.take();
  const temporary = host.sandbox === undefined ? makeTemporary(host, userId) : undefined;

  const where = {
    taskRoot: temporary === undefined ? inside.task : code.directory,
    temporary: temporary ?? inside.temporary,
    runtimeApi: ownNetwork || api === undefined ? `127.0.0.1:${ports.runtimeApi}` : api.address,
    endpoint: ownNetwork ? `http://127.0.0.1:${ports.service}` : around.endpoint(),
    proxy: ownNetwork && around.proxySocket !== undefined ? `http://127.0.0.1:${ports.proxy}` : undefined,
  };
  const sockets: readonly { port: number; source: string; socket: string }[] = ownNetwork
    ? [
        ...(api === undefined
          ? []
          : [{ port: ports.runtimeApi, source: apiSocket, socket: `${inside.sockets}/api` }]),
        { port: ports.service, source: around.serviceSocket, socket: `${inside.sockets}/service` },
        ...(around.proxySocket === undefined
          ? []
          : [{ port: ports.proxy, source: around.proxySocket, socket: `${inside.sockets}/proxy` }]),
      ]
    : [];
  const forwards = sockets.map(({ port, socket }) => ({ port, socket }));
  const own = ownVariables(version, where);
  const deployed = deployedVariables(version, own);
  const program = runtimeCommand({
    kind,
    host,
    version,
    sandboxed: host.sandbox !== undefined,
    where,
    classes,
    forwards,
  });
  const shell = ['/bin/sh', '-s', '--', ...program];
  const outside = host.sandbox === undefined ? group : undefined;
  if (userId !== undefined) outside?.letIn(userId);
  const command =
    host.sandbox === undefined
      ? [
          ...(host.setpriv === undefined ? [] : [host.setpriv, '--no-new-privs', '--pdeathsig', 'KILL']),
          ...shell,
        ]
      : enterBefore(group, {
          sandbox: host.sandbox,
          network: ownNetwork ? 'own' : 'host',
          mounts: [
            ...runtimeMounts(host, kind, classes),
            ...around.etc,
            ...sockets.map(({ source, socket }) => ({ source, target: socket })),
            { source: code.directory, target: inside.task },
          ],
          userId,
          command: shell,
        });

  const script =
    (outside?.enterLines ?? '') +
    limitLines(host, kind, version) +
    exportLines(kind === 'node' ? own : { ...deployed, ...own }) +
    become;

  return {
    command,
    userId: host.sandbox === undefined ? userId : undefined,
    groupId: code.groupId,
    start:
      kind === 'node'
        ? { variables: deployed, forwards, guarded: host.sandbox === undefined, name: version.handler }
        : undefined,
    api,
    marker: api === undefined || ownNetwork ? undefined : token,
    directory: host.sandbox === undefined ? code.directory : '/',
    temporary,
    sandboxed: host.sandbox !== undefined,
    group,
    script,
    async dispose() {
      api?.close();
      if (group !== undefined) await around.cgroups?.remove(group);
      if (userId !== undefined) host.users?.release(userId);
      await rm(folder, { recursive: true, force: true });
      if (temporary !== undefined) await rm(temporary, { recursive: true, force: true });
    },
  };
}

/** The sandbox starts processes itself before the shell in it reads a line, so another shell comes first. */
function enterBefore(group: TaskGroup | undefined, sandboxed: SandboxedCommand): string[] {
  const command = sandboxCommand(sandboxed);
  return group === undefined ? command : ['/bin/sh', '-c', `${group.enterLines}exec "$@"`, 'sh', ...command];
}

/** Here and not from outside, where it would come before or after the sandbox has begun its own processes. */
const become = `command -v nice >/dev/null && exec nice -n ${niceness} "$@" </dev/null
exec "$@" </dev/null
`;

function makeTemporary(host: Host, userId: number | undefined): string {
  const parent = join(host.directory, 'tmp');
  mkdirSync(parent, { recursive: true });
  // By name and not as the mode of a new folder, from which the service's umask takes away.
  chmodSync(parent, 0o711);
  const folder = mkdtempSync(join(parent, 't'));
  chmodSync(folder, 0o700);
  if (userId !== undefined) chownSync(folder, userId, userId);
  return folder;
}

/**
 * Limits that the kernel keeps for each process. The number of processes is counted for a user, so it can
 * only be limited where the user is not shared with anything else.
 */
function limitLines(host: Host, kind: RuntimeKind, version: RunnableVersion): string {
  const most = allowedProcesses({ kind });
  // Twice and more what the version may use: a stop for what grows faster than the watch looks.
  const dataKilobytes = (version.memoryMb * 2 + 512) * 1024;
  const ownUser = host.sandbox !== undefined || host.users !== undefined;
  return [
    'ulimit -c 0',
    `ulimit -n ${openFiles}`,
    `ulimit -d ${dataKilobytes} 2>/dev/null`,
    `ulimit -f ${temporarySpace / 512} 2>/dev/null`,
    // Shells differ in the letter.
    ...(ownUser ? [`ulimit -u ${most} 2>/dev/null || ulimit -p ${most} 2>/dev/null`] : []),
    'umask 077',
    'unset PWD OLDPWD SHLVL',
    `(echo ${niceness} >/proc/self/autogroup) 2>/dev/null`,
    '',
  ].join('\n');
}

function runtimeMounts(host: Host, kind: RuntimeKind, classes: string | undefined): Mount[] {
  const language = kind === 'python' ? host.python : kind === 'java' ? host.java : undefined;
  return [
    { source: host.node, target: inside.node },
    { source: host.bootstraps, target: inside.bootstraps },
    ...(classes === undefined ? [] : [{ source: classes, target: inside.java }]),
    ...(language?.folders ?? [])
      .filter(
        (folder) => folder !== '/usr' && (!folder.startsWith('/usr/') || folder.startsWith('/usr/local')),
      )
      .map((folder) => ({ source: folder, target: folder })),
  ];
}
