/**
 * A folder of the service's own among the control groups, beside or below the group that it runs in. Nothing
 * is made outside of that group, so whatever limits the service limits its tasks as well.
 */
import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { type Hierarchy, readHierarchies } from './cgroup-places.ts';
import { treeOf } from './process-tree.ts';
import { type GroupFolders, processesIn, removed, writeWhereThere } from './task-group.ts';

/** The group that the service itself goes to: one that has groups below it may hold no process itself. */
const serviceLeaf = 'millrace-service';
const needed = ['memory', 'pids'] as const;
const mostMoves = 5;

/** The groups that folders of services are made in, or undefined where that is not the service's to do. */
export function findGroups(): GroupFolders | undefined {
  const hierarchies = readHierarchies(
    readFileSync('/proc/self/mountinfo', 'utf8'),
    readFileSync('/proc/self/cgroup', 'utf8'),
  );
  const newer = hierarchies.find(({ kind }) => kind === 'newer');
  // Root owns every group, so it cannot be told which one was handed to it.
  if (newer !== undefined && offers(newer)) return process.geteuid?.() === 0 ? undefined : delegated(newer);
  const folderOf = (controller: string): string | undefined =>
    hierarchies.find(({ controllers }) => controllers.includes(controller))?.folder;
  const [memory, processes] = needed.map(folderOf);
  if (memory === undefined || processes === undefined) return undefined;
  return { kind: 'older', memory, processes };
}

/** Throws where the kernel does not let it. */
export function makeFolder(groups: GroupFolders, name: string): GroupFolders {
  const { kind } = groups;
  const memory = join(groups.memory, name);
  const processes = join(groups.processes, name);
  try {
    for (const folder of new Set([memory, processes])) open(folder);
    if (kind === 'newer') for (const controller of needed) enable(memory, controller);
  } catch (error) {
    for (const folder of new Set([memory, processes])) removed(folder);
    throw error;
  }
  return { kind, memory, processes };
}

function offers({ folder }: Hierarchy): boolean {
  const there = wordsOf(join(folder, 'cgroup.controllers'));
  const above = basename(folder) === serviceLeaf ? wordsOf(join(dirname(folder), 'cgroup.controllers')) : [];
  return needed.every((name) => there.includes(name) || above.includes(name));
}

/** In the newer kind somebody must have handed the group to the service, and the service must leave it. */
function delegated(own: Hierarchy): GroupFolders | undefined {
  const folder = basename(own.folder) === serviceLeaf ? dirname(own.folder) : own.folder;
  const found = { kind: 'newer', memory: folder, processes: folder } as const;
  if (needed.every((name) => wordsOf(join(folder, 'cgroup.subtree_control')).includes(name))) return found;
  if (statSync(folder).uid !== process.geteuid?.() || !leave(folder)) return undefined;
  try {
    for (const name of needed) enable(folder, name);
    return found;
  } catch {
    writeWhereThere(join(folder, 'cgroup.procs'), String(process.pid));
    removed(join(folder, serviceLeaf));
    return undefined;
  }
}

/** Moves the service and what it started to a group of their own, if nobody else is in theirs. */
function leave(folder: string): boolean {
  for (let move = 0; move < mostMoves; move += 1) {
    const there = processesIn(folder);
    if (there.length === 0) return true;
    const ours = treeOf(process.pid);
    if (!there.every((pid) => ours.includes(pid))) return false;
    mkdirSync(join(folder, serviceLeaf), { recursive: true });
    for (const pid of there) writeWhereThere(join(folder, serviceLeaf, 'cgroup.procs'), String(pid));
  }
  return processesIn(folder).length === 0;
}

/** Users of tasks go through it to their own group, whatever the umask of the service is. */
function open(folder: string): void {
  mkdirSync(folder, { recursive: true });
  chmodSync(folder, 0o755);
}

function enable(folder: string, controller: string): void {
  writeFileSync(join(folder, 'cgroup.subtree_control'), `+${controller}`);
}

function wordsOf(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').trim().split(/\s+/);
  } catch {
    return [];
  }
}
