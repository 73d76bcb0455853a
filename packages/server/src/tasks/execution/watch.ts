/** Looks at what processes use, and ends those that use more than they may. */
import { lstat, opendir } from 'node:fs/promises';
import { join } from 'node:path';
import type { RunnableVersion } from '../version.ts';
import { allowedMemory, mebibyte, temporarySpace } from './limits.ts';
import { standBack, treeOf, useOf } from './process-tree.ts';
import { kindOf } from './programs.ts';
import { outOfMemory } from './runtime-error.ts';
import type { TaskProcess } from './task-process.ts';

const mostFiles = 20_000;
/** More processes than this are more than a task usually needs. */
const crowd = 12;

/** What is remembered about a process between two looks. */
interface Memory {
  idleFrom: number;
  seconds: number;
}

const remembered = new WeakMap<TaskProcess, Memory>();
/** How often a process was looked at in its first moments. */
const firstLooks = new WeakMap<TaskProcess, number>();
/** By then it has opened its session. What it did to stand back itself the kernel may have put off. */
const mostFirstLooks = 10;

export function inspect(process: TaskProcess, version: RunnableVersion, idleProcessorSeconds: number): void {
  if (process.pid === undefined || process.state === 'ended') return;
  const tree = treeOf(process.pid);
  const looks = (firstLooks.get(process) ?? 0) + 1;
  if (looks <= mostFirstLooks) firstLooks.set(process, looks);
  if (looks <= mostFirstLooks || tree.length > crowd) tree.forEach(standBack);
  const use = useOf(tree);
  const { sandboxed, group } = process.launch;
  const allowed = allowedMemory({
    kind: kindOf(version.runtime),
    memoryMb: version.memoryMb,
    sandboxed,
  });
  // The kernel may have ended one process of many; the limit is that of all of them.
  if (use.memoryBytes > allowed || group?.ranOutOfMemory()) {
    process.breakLimit(outOfMemory(version.memoryMb));
    return;
  }
  const memory = remembered.get(process);
  if (process.state !== 'idle' || memory === undefined || memory.idleFrom !== process.idleSince) {
    remembered.set(process, { idleFrom: process.idleSince, seconds: use.processorSeconds });
  } else if (use.processorSeconds - memory.seconds > idleProcessorSeconds) {
    const message = `The process used ${idleProcessorSeconds} seconds of processor time with nothing to do.`;
    process.breakLimit({ type: 'Runtime.BusyWhileIdle', message });
  }
}

/** For a process that writes to the host's disk. In a sandbox its file system has the size itself. */
export async function inspectDisk(process: TaskProcess): Promise<void> {
  const folder = process.launch.temporary;
  if (folder === undefined || process.state === 'ended') return;
  const { bytes, files } = await sizeOf(folder);
  if (bytes <= temporarySpace && files <= mostFiles) return;
  const message = `The process put more than ${temporarySpace / mebibyte} MB or ${mostFiles} files into its tmp.`;
  process.breakLimit({ type: 'Runtime.DiskFull', message });
}

async function sizeOf(folder: string): Promise<{ bytes: number; files: number }> {
  let bytes = 0;
  let files = 0;
  const folders = [folder];
  for (let next = folders.pop(); next !== undefined && files <= mostFiles; next = folders.pop()) {
    try {
      for await (const entry of await opendir(next)) {
        files += 1;
        const path = join(next, entry.name);
        if (entry.isDirectory()) folders.push(path);
        // What it takes on the disk: a file with holes is not as large as it says.
        else bytes += (await lstat(path)).blocks * 512;
        if (files > mostFiles || bytes > temporarySpace) return { bytes, files };
      }
    } catch {
      // Removed while it was looked at.
    }
  }
  return { bytes, files };
}
