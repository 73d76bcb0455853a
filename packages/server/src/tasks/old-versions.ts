import type { TaskParts } from './parts.ts';
import type { Queries, Task } from './task-store.ts';
import { deleteOldVersions, type FormerVersion } from './version-store.ts';

/** The versions that a task keeps beside the active one. */
export const keptVersions = 100;
/** Bounds what one deployment clears up of a task that has many more. */
const atOnce = 100;

/** Versions that are no more, and the keys that nobody may use again. */
export interface RetiredVersions {
  readonly versions: readonly FormerVersion[];
  readonly keys: readonly string[];
}

/**
 * Deletes the oldest versions of a task that has too many, inside the transaction that makes a new one. The
 * version that was active until now may still have work in hand, so it stays until the next time.
 */
export async function retireOldVersions(
  parts: Pick<TaskParts, 'keys'>,
  queries: Queries,
  task: Task,
  activeVersion: number | undefined,
): Promise<RetiredVersions> {
  const spared = [task.activeVersion, activeVersion].filter((version) => version !== undefined);
  const versions = await deleteOldVersions(queries, task, { newest: keptVersions, spared, atOnce });
  const ids = versions.map((version) => version.keyId);
  return { versions, keys: await parts.keys.retireTaskKeys(queries, task.organizationId, ids) };
}

/** Lets go of the code and keys of versions that are no more, after the commit. */
export async function clearUp(
  { keys, code, log }: Pick<TaskParts, 'keys' | 'code' | 'log'>,
  task: Pick<Task, 'organizationId' | 'taskId'>,
  retired: RetiredVersions,
): Promise<void> {
  await keys.revoked(retired.keys);
  try {
    for (const { sessionId } of retired.versions) {
      await code.forget(task, sessionId);
      await code.delete(task.organizationId, sessionId);
    }
  } catch (error) {
    const { organizationId, taskId } = task;
    const fields = { event: 'tasks.code-left', organizationId, taskId, error };
    log.warn(fields, 'the code of an old version is still there');
  }
}
