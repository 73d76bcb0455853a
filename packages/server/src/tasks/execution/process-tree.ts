/** What Linux says about a process and everything it started. */
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { niceness } from './limits.ts';

const pageSize = 4096;
const ticksPerSecond = 100;

export interface TreeUse {
  /** Memory that belongs to the processes alone, without the programs mapped into them. */
  readonly memoryBytes: number;
  readonly processorSeconds: number;
  readonly processes: number;
}

/** The process and its descendants, parents first. One that forked and lost its parent is not among them. */
export function treeOf(pid: number, most = 2000): number[] {
  const found = [pid];
  for (let at = 0; at < found.length && found.length < most; at += 1) {
    const parent = found[at] ?? 0;
    for (const thread of list(`/proc/${parent}/task`)) {
      const children = read(`/proc/${parent}/task/${thread}/children`);
      for (const child of children.split(' ')) if (child !== '') found.push(Number(child));
    }
  }
  return found;
}

export function useOf(pids: readonly number[]): TreeUse {
  let memoryBytes = 0;
  let processorSeconds = 0;
  for (const pid of pids) {
    const [, resident = 0, shared = 0] = read(`/proc/${pid}/statm`).split(' ').map(Number);
    memoryBytes += Math.max(0, resident - shared) * pageSize;
    processorSeconds += processorSecondsOf(read(`/proc/${pid}/stat`));
  }
  return { memoryBytes, processorSeconds, processes: pids.length };
}

/** Fields 14 to 17: its own time and that of the children it has waited for. */
function processorSecondsOf(stat: string): number {
  // The second field is a name in brackets that may hold anything, so fields count from its end.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const ticks = [11, 12, 13, 14].reduce((sum, at) => sum + Number(fields[at] ?? 0), 0);
  return Number.isFinite(ticks) ? ticks / ticksPerSecond : 0;
}

/** Every process whose environment held this text when it was started; those of other users are skipped. */
export function startedWith(text: string): number[] {
  return list('/proc')
    .filter((name) => /^\d+$/.test(name) && read(`/proc/${name}/environ`).includes(text))
    .map(Number);
}

/** Every process of a user. */
export function processesOf(userId: number): number[] {
  return list('/proc')
    .filter((name) => /^\d+$/.test(name) && ownerOf(`/proc/${name}`) === userId)
    .map(Number);
}

export function isAlive(pid: number): boolean {
  const stat = read(`/proc/${pid}/stat`);
  return stat !== '' && !stat.slice(stat.lastIndexOf(')')).startsWith(') Z');
}

/**
 * Linux shares the processors out between sessions, and a process can open as many sessions as it likes.
 * This makes its session stand back again; where that is not allowed or not so, nothing changes.
 */
export function standBack(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/autogroup`, String(niceness));
  } catch {
    // Ended meanwhile, or a kernel without such groups.
  }
}

function ownerOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.uid;
}

/** A process may end while it is looked at: what is gone reads as empty. */
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function list(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}
