import type { Task, TaskChange } from './task-store.ts';

/**
 * The life of a task. Each function answers what changes of the row of a task when something happens to
 * it; a row is read and changed in one transaction.
 *
 *   (none) ── deploy ──> CREATING ── failed, or deployed and not to be switched to ──> PAUSED
 *                           │                                                            │
 *                           └── deployed and to be switched to ──> STARTING <── resume, or the first version
 *                                                                     │         that is made active
 *                  PAUSED <── nothing in hand ── PAUSING <── pause ── RUNNING <─┐
 *                                                                     │         │ the new version runs, or
 *                                            deploy with switch, activate       │ could not be switched to
 *                                                                     v         │
 *                                                                   UPDATING ───┘
 *
 * While a deployment or an activation is under way, `updatingNode` says where, and the active version runs
 * on as it was. A task that was paused stays paused when another version is made active.
 */

/** Whether the active version is to be given work. */
export function isToRun(task: Task): boolean {
  return task.phase !== 'PAUSED' && task.phase !== 'PAUSING' && task.phase !== 'CREATING';
}

/** A deployment or activation begins on a node. */
export function beginUpdate(task: Task, node: string, isSwitch: boolean): TaskChange {
  return {
    updateStatus: 'IN_PROGRESS',
    updateReason: undefined,
    updatingNode: node,
    ...(isSwitch && task.activeVersion !== undefined && isToRun(task) ? { phase: 'UPDATING' } : {}),
  };
}

/** A new version exists. */
export function deployed(task: Task, version: number, isSwitch: boolean): TaskChange {
  const made: TaskChange = { lastVersion: version, updatingNode: undefined };
  if (isSwitch) return { ...made, ...switched(task, version) };
  return {
    ...made,
    updateStatus: 'SUCCESSFUL',
    updateReason: undefined,
    ...(task.phase === 'CREATING' ? { phase: 'PAUSED' } : {}),
  };
}

/** Another version is the active one. */
export function switched(task: Task, version: number): TaskChange {
  const change: TaskChange = { activeVersion: version, updatingNode: undefined, updateReason: undefined };
  const isFirst = task.activeVersion === undefined;
  if (!isFirst && !isToRun(task)) return { ...change, updateStatus: 'SUCCESSFUL' };
  return { ...change, updateStatus: 'IN_PROGRESS', phase: isFirst ? 'STARTING' : 'UPDATING' };
}

/** A deployment or activation came to nothing: the active version is what it was. */
export function failed(task: Task, reason: string): TaskChange {
  const change: TaskChange = { updateStatus: 'FAILED', updateReason: reason, updatingNode: undefined };
  if (task.phase === 'CREATING') return { ...change, phase: 'PAUSED' };
  return task.phase === 'UPDATING' ? { ...change, phase: 'RUNNING' } : change;
}

export function paused(task: Task): TaskChange {
  if (!isToRun(task)) return {};
  return { phase: task.activeVersion === undefined ? 'PAUSED' : 'PAUSING' };
}

export function resumed(task: Task): TaskChange {
  return isToRun(task) || task.activeVersion === undefined ? {} : { phase: 'STARTING' };
}

/** The active version is given work on some node. */
export function runs(task: Task): TaskChange {
  if (task.updatingNode !== undefined || (task.phase !== 'STARTING' && task.phase !== 'UPDATING')) return {};
  return {
    phase: 'RUNNING',
    ...(task.updateStatus === 'IN_PROGRESS' ? { updateStatus: 'SUCCESSFUL' } : {}),
  };
}

/** Nothing is in hand any more. */
export function rests(task: Task): TaskChange {
  return task.phase === 'PAUSING' ? { phase: 'PAUSED' } : {};
}

/** The process that was at work on it has ended. */
export function cutOff(task: Task): TaskChange {
  const change = failed(task, 'The service ended while this was under way. Try again.');
  return task.phase === 'UPDATING' ? { ...change, phase: 'STARTING' } : change;
}
