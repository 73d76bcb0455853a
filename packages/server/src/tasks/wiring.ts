import { streamsOf, type TopicsDocument } from '../topics/definition.ts';
import { findCycle } from './cycle.ts';
import type { VersionSettings } from './settings.ts';
import { listActive, type Queries, type TaskAddress } from './task-store.ts';

/**
 * Whether a version would feed itself through its outputs, given what the other tasks do now: a sentence
 * with the path, or undefined.
 */
export async function cycleOf(
  queries: Queries,
  document: TopicsDocument,
  { organizationId, taskId }: TaskAddress,
  settings: VersionSettings,
): Promise<string | undefined> {
  const others = [];
  for (const { task, active } of await listActive(queries, organizationId)) {
    if (active === undefined) continue;
    const { inputQueueNames, outputQueueNames } = active.settings;
    others.push({ taskId: task.taskId, inputs: inputQueueNames, outputs: outputQueueNames });
  }
  const start = { taskId, inputs: settings.inputQueueNames, outputs: settings.outputQueueNames };
  const path = findCycle(start, others, (topicName) => streamsOf(document, topicName));
  return path === undefined ? undefined : `The task would feed itself: ${path.join(' -> ')}.`;
}
