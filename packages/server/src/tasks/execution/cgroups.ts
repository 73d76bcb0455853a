/**
 * Control groups for the processes of tasks, where the host lets the service make any. Each process has one
 * for itself and everything it starts, so that the kernel keeps the limits at every moment and nothing gets
 * away when it is ended. See docs/adr/0033.
 *
 *   the group of the service / millrace-<namespace>-<pid>-<start>-<n> / <process>
 */
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { Log } from '../../platform/log.ts';
import { findGroups, makeFolder } from './cgroup-folders.ts';
import { mebibyte } from './limits.ts';
import { foldersOf, type GroupFolders, type GroupLimits, removed, TaskGroup } from './task-group.ts';

const trialLimits: GroupLimits = { memoryBytes: 32 * mebibyte, processes: 16 };
const trialMilliseconds = 5000;
/** The namespace of process numbers, a service in it, when that started, and which of its folders this is. */
const folderName = /^millrace-(\d+)-(\d+)-(\d+)-\d+$/;

let opened = 0;

export class Cgroups {
  readonly #parents: GroupFolders;
  readonly #name: string;
  readonly #log: Log;
  readonly #groups = new Set<TaskGroup>();
  #made = 0;
  /** There only while there are groups: a service that is killed has as little as possible to leave behind. */
  #folders: GroupFolders | undefined;

  private constructor(parents: GroupFolders, name: string, log: Log) {
    this.#parents = parents;
    this.#name = name;
    this.#log = log;
  }

  /** Undefined where a group does not hold a process as it must, which is nothing to be told about. */
  static async open(log: Log): Promise<Cgroups | undefined> {
    let cgroups: Cgroups | undefined;
    try {
      const groups = findGroups();
      if (groups === undefined) return undefined;
      await sweep(groups);
      opened += 1;
      const name = `millrace-${namespace()}-${process.pid}-${startOf(process.pid)}-${opened}`;
      cgroups = new Cgroups(groups, name, log);
      if (await cgroups.#works()) return cgroups;
    } catch {
      // Not writable, or not as expected.
    }
    await cgroups?.close();
    return undefined;
  }

  make(limits: GroupLimits): TaskGroup {
    try {
      return this.#make(limits);
    } catch (error) {
      this.#log.error({ event: 'task.cgroup', error }, 'a control group for a task cannot be made');
      throw new Error('The service could not limit the process. Its operator finds the reason in the log.', {
        cause: error,
      });
    }
  }

  /** After the end of its processes. One that is still busy is tried again when all end. */
  async remove(group: TaskGroup): Promise<void> {
    if (await group.remove()) this.#groups.delete(group);
    if (this.#groups.size > 0 || this.#folders === undefined) return;
    for (const folder of foldersOf(this.#folders)) removed(folder);
    this.#folders = undefined;
  }

  async close(): Promise<void> {
    for (const group of this.#groups) {
      await group.kill();
      await this.remove(group);
    }
  }

  #make(limits: GroupLimits): TaskGroup {
    this.#made += 1;
    this.#folders ??= makeFolder(this.#parents, this.#name);
    const group = TaskGroup.at(this.#folders, String(this.#made));
    // Noted before it is whole: what was made of one that cannot be finished is removed with the others.
    this.#groups.add(group);
    group.create(limits);
    return group;
  }

  /** A shell that goes into a group and says where it finds itself. */
  async #works(): Promise<boolean> {
    const group = this.#make(trialLimits);
    const said = await new Promise<string>((settle) => {
      const options = { timeout: trialMilliseconds, killSignal: 'SIGKILL' as const, cwd: '/', env: {} };
      const script = `${group.enterLines}cat /proc/self/cgroup`;
      execFile('/bin/sh', ['-c', script], options, (error, output) => settle(error === null ? output : ''));
    });
    const trees = this.#folders === undefined ? 0 : foldersOf(this.#folders).size;
    await this.remove(group);
    const inside = `/${this.#name}/${this.#made}`;
    return said.split('\n').filter((line) => line.endsWith(inside)).length === trees;
  }
}

/** Ends and removes what services have left that were killed. */
async function sweep(groups: GroupFolders): Promise<void> {
  const { kind } = groups;
  const here = namespace();
  for (const parent of foldersOf(groups)) {
    for (const name of foldersIn(parent)) {
      const [, where, pid, start] = folderName.exec(name) ?? [];
      // The numbers of another namespace say nothing here.
      if (where !== here || startOf(Number(pid)) === start) continue;
      const folder = join(parent, name);
      const left = { kind, memory: folder, processes: folder };
      for (const child of foldersIn(folder)) {
        const group = TaskGroup.at(left, child);
        await group.kill();
        await group.remove();
      }
      removed(folder);
    }
  }
}

function foldersIn(path: string): string[] {
  try {
    return readdirSync(path, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
  } catch {
    return [];
  }
}

function namespace(): string {
  return /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0] ?? '';
}

/** When a process started, which tells it from a later one of the same number. Empty when it is gone. */
function startOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' ? '' : (fields[19] ?? '');
  } catch {
    return '';
  }
}
