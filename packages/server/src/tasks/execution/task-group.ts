/** The control group of one process of a task and everything that it starts. */
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { quote } from './environment.ts';
import { mebibyte } from './limits.ts';

/** The folders that groups are made in. In the newer kind it is one and the same. */
export interface GroupFolders {
  readonly kind: 'older' | 'newer';
  readonly memory: string;
  readonly processes: string;
}

export function foldersOf({ memory, processes }: GroupFolders): Set<string> {
  return new Set([memory, processes]);
}

export interface GroupLimits {
  readonly memoryBytes: number;
  readonly processes: number;
}

/** The kernel refuses a huge page when there is still room for small ones. */
const hugePages = 4 * mebibyte;
const rounds = 40;
/** A group that has just become empty may be busy for another moment. */
const pauseMs = 5;
const longPauseMs = 25;

export class TaskGroup {
  readonly #folders: GroupFolders;

  private constructor(folders: GroupFolders) {
    this.#folders = folders;
  }

  static at(parents: GroupFolders, name: string): TaskGroup {
    const { kind, memory, processes } = parents;
    return new TaskGroup({
      kind,
      memory: join(memory, name),
      processes: join(processes, name),
    });
  }

  /** Throws where the kernel does not take the limits. */
  create(limits: GroupLimits): void {
    const { kind, memory, processes } = this.#folders;
    for (const folder of foldersOf(this.#folders)) mkdirSync(folder);
    const bytes = String(limits.memoryBytes);
    if (kind === 'older') {
      writeFileSync(join(memory, 'memory.limit_in_bytes'), bytes);
      // With the same limit for both together nothing is left for swap.
      writeWhereThere(join(memory, 'memory.memsw.limit_in_bytes'), bytes);
    } else {
      writeFileSync(join(memory, 'memory.max'), bytes);
      writeWhereThere(join(memory, 'memory.swap.max'), '0');
      writeWhereThere(join(memory, 'memory.oom.group'), '1');
    }
    writeFileSync(join(processes, 'pids.max'), String(limits.processes));
  }

  /**
   * Lines with which a shell goes into the group. A process that moves itself is let in at once, one that is
   * moved waits for all processors, which can take the time of a whole start.
   */
  get enterLines(): string {
    return this.#doors()
      .map((door) => `echo 0 >${quote(door)} || exit 1\n`)
      .join('');
  }

  /** Lets a user in by `enterLines`. Only the older kind has groups for others than the user of the service. */
  letIn(userId: number): void {
    // The umask of the service kept others out.
    for (const folder of foldersOf(this.#folders)) chmodSync(folder, 0o755);
    for (const door of this.#doors()) chownSync(door, userId, 0);
  }

  /** Whether the kernel ended a process of the group because the group was at its limit. */
  ranOutOfMemory(): boolean {
    const { kind, memory } = this.#folders;
    if (kind === 'newer') {
      const events = read(join(memory, 'memory.events'));
      return countOf(events, 'oom_kill') > 0 && countOf(events, 'oom') > 0;
    }
    if (countOf(read(join(memory, 'memory.oom_control')), 'oom_kill') === 0) return false;
    // Its counts of refusals stay at nothing with some kernels.
    const [most = 0, limit = 0] = ['memory.max_usage_in_bytes', 'memory.limit_in_bytes'].map((name) =>
      Number(read(join(memory, name))),
    );
    return most > limit - hugePages;
  }

  /** Ends everything in the group. True when nothing is left. */
  async kill(): Promise<boolean> {
    const { memory, processes } = this.#folders;
    for (let round = 0; round < rounds; round += 1) {
      const left = processesIn(memory);
      if (left.length === 0) return true;
      // From here on nothing in it can start anything, so no round is outrun.
      writeWhereThere(join(processes, 'pids.max'), '0');
      writeWhereThere(join(memory, 'cgroup.kill'), '1');
      for (const pid of left) signal(pid);
      await pause(round < rounds / 2 ? pauseMs : longPauseMs);
    }
    return false;
  }

  /** True when it is gone. */
  async remove(): Promise<boolean> {
    for (let round = 0; round < rounds; round += 1) {
      if ([...foldersOf(this.#folders)].filter((folder) => !removed(folder)).length === 0) return true;
      await pause(round < rounds / 2 ? pauseMs : longPauseMs);
    }
    return false;
  }

  #doors(): string[] {
    const name = this.#folders.kind === 'older' ? 'tasks' : 'cgroup.procs';
    return [...foldersOf(this.#folders)].map((folder) => join(folder, name));
  }
}

/** Those of other namespaces of processes read as 0 and are left out. */
export function processesIn(folder: string): number[] {
  return read(join(folder, 'cgroup.procs'))
    .split('\n')
    .map(Number)
    .filter((pid) => pid > 0);
}

/** Whether a group is gone now. */
export function removed(folder: string): boolean {
  try {
    rmdirSync(folder);
    return true;
  } catch {
    return !existsSync(folder);
  }
}

/** For what not every kernel has. */
export function writeWhereThere(path: string, text: string): void {
  try {
    // Never a new file: there is none to be made in these folders.
    if (existsSync(path)) writeFileSync(path, text);
  } catch {
    // Taken by a kernel that has it switched off, or gone with its group.
  }
}

function countOf(text: string, name: string): number {
  const line = text.split('\n').find((one) => one.startsWith(`${name} `));
  return Number(line?.slice(name.length + 1) ?? 0);
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function signal(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // Gone already.
  }
}
