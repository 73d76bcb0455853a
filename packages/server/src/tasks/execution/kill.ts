import { spawn } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import { isAlive, processesOf, startedWith, treeOf } from './process-tree.ts';
import type { TaskGroup } from './task-group.ts';

export interface KillTarget {
  readonly pid: number;
  /** Its number may belong to another by now; only what it left behind is ended. */
  readonly exited: boolean;
  /** The kernel ends everything in a sandbox together with its first process. */
  readonly sandboxed: boolean;
  /** A user that nothing else runs as. */
  readonly userId: number | undefined;
  /** Text in the environment of whatever the process started. */
  readonly marker: string | undefined;
  /** Holds the process from its first moment, and all it started. */
  readonly group: TaskGroup | undefined;
}

const rounds = 20;
const pauseMs = 25;

/** Ends a process and everything it started. What outruns one round is met by the next. */
export async function killTree(target: KillTarget): Promise<void> {
  if (target.sandboxed) {
    if (!target.exited) signal(target.pid);
    await target.group?.kill();
    return;
  }
  const known = target.exited ? [] : treeOf(target.pid);
  signal(-target.pid);
  for (const pid of known) signal(pid);
  const emptied = await target.group?.kill();
  // As the user of the service a process can leave its group, as any other it cannot.
  if (emptied === true && target.userId !== undefined) return;
  for (let round = 0; round < rounds; round += 1) {
    if (target.userId !== undefined) await killUser(target.userId);
    const left = [...known, ...leftOf(target)].filter((pid) => pid !== process.pid && isAlive(pid));
    if (left.length === 0) return;
    for (const pid of left) signal(pid);
    await pause(pauseMs);
  }
}

function leftOf({ userId, marker }: KillTarget): number[] {
  if (userId !== undefined) return processesOf(userId);
  return marker === undefined ? [] : startedWith(marker);
}

/** A process of the user itself sends the signal to all at once, so none can fork away from it. */
function killUser(userId: number): Promise<void> {
  return new Promise((resolve) => {
    const killer = spawn('/bin/sh', ['-c', 'kill -9 -1'], {
      uid: userId,
      gid: userId,
      stdio: 'ignore',
      env: {},
    });
    killer.once('error', () => resolve());
    killer.once('exit', () => resolve());
  });
}

function signal(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // Gone already.
  }
}
