import { join } from 'node:path';
import type { RunnableVersion } from '../version.ts';
import type { Whereabouts } from './environment.ts';
import type { Host } from './host.ts';
import type { RuntimeKind } from './programs.ts';
import { inside } from './sandbox.ts';

export interface RuntimeOptions {
  readonly kind: RuntimeKind;
  readonly host: Host;
  readonly version: RunnableVersion;
  readonly sandboxed: boolean;
  readonly where: Whereabouts;
  /** Where the compiled Java bootstrap is on the host. */
  readonly classes: string | undefined;
  /** Ports that must lead to sockets before the code starts. */
  readonly forwards: readonly { readonly port: number; readonly socket: string }[];
}

/** The command of a runtime as its process sees it. */
export function runtimeCommand(options: RuntimeOptions): string[] {
  const { kind, host, sandboxed, where, forwards } = options;
  const node = sandboxed ? inside.node : host.node;
  const bootstraps = sandboxed ? inside.bootstraps : host.bootstraps;
  if (kind === 'node') return [node, ...nodeFlags(options, bootstraps), join(bootstraps, 'node.mjs')];
  const command =
    kind === 'python'
      ? [host.python?.path ?? 'python3', '-B', join(bootstraps, 'python3.py')]
      : kind === 'java'
        ? javaCommand(options)
        : [join(where.taskRoot, 'bootstrap')];
  if (forwards.length === 0) return command;
  const forwarder = join(bootstraps, 'forwarder.mjs');
  return [
    node,
    '--max-old-space-size=32',
    '--v8-pool-size=0',
    forwarder,
    JSON.stringify(forwards),
    ...command,
  ];
}

/**
 * Node's own permission model. Inside a sandbox it is a second wall, and programs, addons and threads are
 * allowed because the first one holds them; without a sandbox it is the only wall, and they are not.
 */
function nodeFlags({ version, sandboxed, where }: RuntimeOptions, bootstraps: string): string[] {
  return [
    '--permission',
    '--allow-net',
    `--allow-fs-read=${where.taskRoot}`,
    `--allow-fs-read=${bootstraps}`,
    `--allow-fs-read=${where.temporary}`,
    `--allow-fs-write=${where.temporary}`,
    ...(sandboxed ? ['--allow-child-process', '--allow-addons', '--allow-worker', '--allow-wasi'] : []),
    '--v8-pool-size=1',
    '--disable-sigusr1',
    // These would tell every task about the flags above.
    '--disable-warning=ExperimentalWarning',
    '--disable-warning=SecurityWarning',
    `--max-old-space-size=${version.memoryMb}`,
  ];
}

function javaCommand({ host, version, sandboxed, where, classes }: RuntimeOptions): string[] {
  return [
    host.java?.path ?? 'java',
    `-Xmx${version.memoryMb}m`,
    '-XX:+UseSerialGC',
    '-XX:TieredStopAtLevel=1',
    '-Xshare:auto',
    '-XX:-UsePerfData',
    `-Djava.io.tmpdir=${where.temporary}`,
    '-cp',
    sandboxed ? inside.java : (classes ?? ''),
    'Bootstrap',
  ];
}
