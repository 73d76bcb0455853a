import type { NamedType } from '@millrace/contract';
import type { TaskAddress, TaskWithActive, Version } from './task-store.ts';

export type TaskStatus = NamedType<'TaskStatus'>;
export type TaskVersion = NamedType<'TaskVersion'>;

export function versionAnswer(
  taskId: string,
  { number, description }: Pick<Version, 'number' | 'description'>,
): TaskVersion {
  return { taskId, version: String(number), description };
}

/** The number of a version by its name, which is written in one way only; undefined when it names none. */
export function versionNumber(name: string): number | undefined {
  return /^[1-9][0-9]{0,8}$/.test(name) ? Number(name) : undefined;
}

/** How a task is shown. `trouble` is what keeps its processes from staying up now. */
export function statusAnswer(
  { taskId }: Pick<TaskAddress, 'taskId'>,
  found: TaskWithActive | undefined,
  publicUrl: string,
  trouble: string | undefined,
): TaskStatus {
  if (found === undefined) return { taskId, status: 'NOTFOUND' };
  const { task, active, organizationName } = found;
  const reason = trouble ?? task.updateReason;
  return {
    taskId,
    status: task.phase,
    ...(active === undefined ? {} : { version: String(active.number) }),
    ...(task.updateStatus === undefined ? {} : { lastUpdateStatus: task.updateStatus }),
    ...(reason === undefined ? {} : { lastUpdateStatusReason: reason }),
    ...(active?.settings.endpoint === undefined
      ? {}
      : { endpointUrl: `${publicUrl}/v1/organization/${organizationName}/endpoint/${taskId}/` }),
    ...(active === undefined
      ? {}
      : {
          inputQueueNames: [...active.settings.inputQueueNames],
          outputQueueNames: [...active.settings.outputQueueNames],
        }),
  };
}
