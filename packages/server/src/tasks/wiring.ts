import { type Problem, problem } from '../platform/problem.ts';
import { streamsOf, type TopicsDocument } from '../topics/definition.ts';
import { findClosedCycle, findCycle, type Wiring } from './cycle.ts';
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
  const others = await activeWirings(queries, organizationId);
  const start = { taskId, inputs: settings.inputQueueNames, outputs: settings.outputQueueNames };
  const path = findCycle(start, others, (topicName) => streamsOf(document, topicName));
  return path === undefined ? undefined : `The task would feed itself: ${path.join(' -> ')}.`;
}

/**
 * Whether a change of the topics would make a task feed itself. To be asked in the transaction of the change:
 * of that and the activation of a version at the same time, one then sees the other.
 */
export async function cycleOfTopics(
  queries: Queries,
  organizationId: string,
  present: TopicsDocument,
  next: TopicsDocument,
): Promise<Problem | undefined> {
  const tasks = await activeWirings(queries, organizationId);
  const path = findClosedCycle(
    tasks,
    (topicName) => streamsOf(present, topicName),
    (topicName) => streamsOf(next, topicName),
  );
  if (path === undefined) return undefined;
  return problem('TASK_CYCLE', `The change would make a task feed itself: ${path.join(' -> ')}.`);
}

/** What the active versions of an organization read and write. */
async function activeWirings(queries: Queries, organizationId: string): Promise<Wiring[]> {
  const found = await listActive(queries, organizationId);
  return found.flatMap(({ task, active }) => {
    if (active === undefined) return [];
    const { inputQueueNames, outputQueueNames } = active.settings;
    return [{ taskId: task.taskId, inputs: inputQueueNames, outputs: outputQueueNames }];
  });
}
