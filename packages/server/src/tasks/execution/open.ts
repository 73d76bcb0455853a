import { mkdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Clock } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import type { Random } from '../../platform/random.ts';
import type { RunnableVersion, Runtime } from '../version.ts';
import { Cgroups } from './cgroups.ts';
import type { Execution, OutputLine, TaskPool } from './execution.ts';
import { type Host, makeReadable, openHost } from './host.ts';
import { type HidePaths, pathsHidden, withoutPaths } from './host-paths.ts';
import { JavaClasses } from './java-classes.ts';
import { prepareLaunch, type Surroundings } from './launch.ts';
import { idleLimitMs, idleProcessorSeconds, startLimitMs, watchIntervalMs } from './limits.ts';
import { openProxy } from './network/proxy.ts';
import { type PoolOptions, type ProcessEvents, ProcessPool } from './pool.ts';
import { kindOf } from './programs.ts';
import { dialled, openRelay } from './relay.ts';
import type { Mount } from './sandbox.ts';
import { type StagedCode, stageCode } from './staging.ts';
import { TaskProcess } from './task-process.ts';
import { inspect, inspectDisk } from './watch.ts';

export interface ExecutionOptions {
  readonly sandbox: 'auto' | 'bubblewrap' | 'none';
  readonly network: 'none' | 'open' | 'filtered';
  /** Hosts that a filtered network leads to; see network/allow-list.ts. */
  readonly networkAllow: readonly string[];
  /** Where the service listens. */
  readonly serviceAddress: () => { readonly host: string; readonly port: number };
  /** Emptied at the start; nobody else may use it. */
  readonly scratchDirectory: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  onLine(version: RunnableVersion, line: OutputLine): void;
  /** Whether control groups are used where the host lets them be made. */
  readonly cgroups?: 'auto' | 'none';
  /** How long code may take to ask for its first invocation. */
  readonly startLimitMs?: number;
  /** How long a process with nothing to do is kept. */
  readonly idleLimitMs?: number;
  /** Processor time a process may use while it has nothing to do. */
  readonly idleProcessorSeconds?: number;
}

/** How many looks at the processes there are between two at those that are idle, and at their disks. */
const calmLooks = 5;

export async function openExecution(options: ExecutionOptions): Promise<Execution> {
  const [host, cgroups] = await Promise.all([
    openHost(options),
    options.cgroups === 'none' ? undefined : Cgroups.open(options.log),
  ]);
  const serviceSocket = join(host.sockets, 's');
  const relay = await openRelay(serviceSocket, options.serviceAddress);
  const filtered = options.network === 'filtered' && host.sandbox !== undefined;
  const proxySocket = filtered ? join(host.sockets, 'x') : undefined;
  const proxy =
    proxySocket === undefined
      ? undefined
      : await openProxy({ socketPath: proxySocket, allow: options.networkAllow });
  const around: Surroundings = {
    host,
    network: options.network,
    serviceSocket,
    proxySocket,
    endpoint: () => endpointOf(options.serviceAddress()),
    javaClasses: new JavaClasses(host),
    cgroups,
    etc: await writeEtc(host, options.network),
    random: options.random,
  };
  const execution = new ProcessExecution(options, around);
  return {
    isolation: describeIsolation(host, options.network, cgroups !== undefined),
    ...(options.sandbox === 'bubblewrap' && host.sandbox === undefined
      ? {
          refusal:
            'Tasks do not run: MILLRACE_TASK_SANDBOX is bubblewrap, and this host has no bubblewrap that works.',
        }
      : {}),
    missing: (runtime) => missingFor(host, runtime),
    probe: (version, signal) => execution.probe(version, signal),
    open: (version) => execution.open(version),
    async close() {
      await execution.close();
      await cgroups?.close();
      relay.close();
      proxy?.close();
      await host.close();
    },
  };
}

class ProcessExecution {
  readonly #options: ExecutionOptions;
  readonly #around: Surroundings;
  readonly #pools = new Map<ProcessPool, RunnableVersion>();
  readonly #watch: NodeJS.Timeout;
  #looks = 0;
  #lookingAtDisks = false;

  constructor(options: ExecutionOptions, around: Surroundings) {
    this.#options = options;
    this.#around = around;
    this.#watch = setInterval(() => this.#look(), watchIntervalMs);
    this.#watch.unref();
  }

  open(version: RunnableVersion): TaskPool {
    return withoutPaths(this.#open(version), this.#hide(version));
  }

  async probe(
    version: RunnableVersion,
    signal: AbortSignal,
  ): Promise<{ ok: true } | { ok: false; error: string }> {
    const pool = this.#open({ ...version, concurrency: 1 });
    try {
      const error = await pool.tryStart(signal);
      return error === undefined ? { ok: true } : { ok: false, error: this.#hide(version)(error) };
    } finally {
      await pool.close();
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#watch);
    await Promise.all([...this.#pools.keys()].map((pool) => pool.close()));
  }

  #open(version: RunnableVersion): ProcessPool {
    const refused =
      this.#options.sandbox === 'bubblewrap' && this.#around.host.sandbox === undefined
        ? 'This host has no bubblewrap that works.'
        : missingFor(this.#around.host, version.runtime);
    let staged: Promise<StagedCode> | undefined;
    const start: PoolOptions['start'] = async (events) => {
      if (refused !== undefined) throw new Error(refused);
      staged ??= this.#stage(version);
      staged.catch(() => {
        // Tried anew by the next start.
        staged = undefined;
      });
      return this.#start(version, await staged, events);
    };
    const pool = new ProcessPool({
      concurrency: version.concurrency,
      timeoutMs: version.timeoutSec * 1000,
      idleLimitMs: this.#options.idleLimitMs ?? idleLimitMs,
      start,
      onClosed: async () => {
        this.#pools.delete(pool);
        await staged?.then((code) => code.release()).catch(() => {});
      },
    });
    this.#pools.set(pool, version);
    return pool;
  }

  /** What goes wrong here is a fault of ours: people are told no more than that, and the log has the rest. */
  async #stage(version: RunnableVersion): Promise<StagedCode> {
    try {
      return await stageCode(this.#around.host, resolve(version.codeDirectory), this.#around.random);
    } catch (error) {
      const { taskId } = version;
      this.#options.log.error(
        { event: 'task.staging', taskId, error },
        'the code of a task cannot be laid out',
      );
      throw new Error('The service could not lay out the code. Its operator finds the reason in the log.', {
        cause: error,
      });
    }
  }

  #hide(version: RunnableVersion): HidePaths {
    const { directory } = this.#around.host;
    return pathsHidden(
      [resolve(version.codeDirectory)],
      [directory, resolve(this.#options.scratchDirectory)],
    );
  }

  async #start(version: RunnableVersion, code: StagedCode, events: ProcessEvents): Promise<TaskProcess> {
    let process: TaskProcess | undefined;
    const launch = await prepareLaunch(this.#around, version, code, {
      onNext: () => process?.next(),
      onAnswer: (payload) => process?.answer(payload),
      onError: (error) => process?.fail(error),
      onStartError: (error) => process?.failStart(error),
    });
    try {
      const made: TaskProcess = new TaskProcess({
        version,
        launch,
        clock: this.#options.clock,
        startLimitMs: this.#options.startLimitMs ?? startLimitMs,
        onLine: (line) => this.#options.onLine(version, line),
        onError: () => this.#inspect(made, version),
        onIdle: () => events.onIdle(made),
        onEnd: (end) => events.onEnd(made, end),
      });
      process = made;
      return made;
    } catch (error) {
      await launch.dispose();
      throw error;
    }
  }

  #look(): void {
    this.#looks += 1;
    const calm = this.#looks % calmLooks === 0;
    const now = performance.now();
    const writers: TaskProcess[] = [];
    for (const [pool, version] of this.#pools) {
      if (calm) pool.stopIdle(now);
      for (const process of pool.processes()) {
        if (calm || process.state !== 'idle') this.#inspect(process, version);
        if (calm) writers.push(process);
      }
    }
    if (writers.length > 0) void this.#lookAtDisks(writers);
  }

  #inspect(process: TaskProcess, version: RunnableVersion): void {
    inspect(process, version, this.#options.idleProcessorSeconds ?? idleProcessorSeconds);
  }

  async #lookAtDisks(processes: readonly TaskProcess[]): Promise<void> {
    if (this.#lookingAtDisks) return;
    this.#lookingAtDisks = true;
    try {
      for (const process of processes) await inspectDisk(process);
    } catch (error) {
      this.#options.log.warn({ event: 'task.disk', error }, 'the disk use of a task could not be read');
    } finally {
      this.#lookingAtDisks = false;
    }
  }
}

function missingFor(host: Host, runtime: Runtime): string | undefined {
  const kind = kindOf(runtime);
  if (kind === 'python' && host.python === undefined) return 'The runtime PYTHON3 needs python3 on the host.';
  if (kind === 'java' && host.java === undefined) {
    return 'The runtime JAVA21 needs a JDK (java and javac, version 17 or later) on the host.';
  }
  return undefined;
}

function endpointOf({ host, port }: { host: string; port: number }): string {
  const name = dialled(host);
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}`;
}

function describeIsolation(host: Host, network: ExecutionOptions['network'], grouped: boolean): string {
  const user = host.users === undefined ? "the service's own user" : 'a user id of its own each';
  const groups = grouped ? ', memory and processes limited by cgroups' : '';
  const reach =
    host.users === undefined ? ' (code that is not Node can read and write what that user can)' : '';
  if (host.sandbox !== undefined) {
    return `tasks run in bubblewrap sandboxes, as ${user}, network ${network}${groups}`;
  }
  const limited =
    network === 'open' ? '' : `; the network setting ${network} cannot be kept without bubblewrap`;
  return `tasks run WITHOUT a sandbox, as ${user}${reach}, with limits and Node's permission model only, network open${groups}${limited}`;
}

/** The few files of /etc that programs look for, with nothing of the host in them. */
async function writeEtc(host: Host, network: ExecutionOptions['network']): Promise<Mount[]> {
  if (host.sandbox === undefined) return [];
  const folder = join(host.directory, 'etc');
  await mkdir(folder, { recursive: true });
  const files: Record<string, string> = {
    passwd: 'task:x:1000:1000:task:/tmp:/bin/sh\n',
    group: 'task:x:1000:\n',
    hosts: '127.0.0.1 localhost task\n',
  };
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  await makeReadable(folder);
  return [
    ...Object.keys(files).map((name) => ({ source: join(folder, name), target: `/etc/${name}` })),
    ...(network === 'open' ? [{ source: '/etc/resolv.conf', target: '/etc/resolv.conf' }] : []),
  ];
}
