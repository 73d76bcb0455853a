/** What a task reads and writes. */
export interface Wiring {
  readonly taskId: string;
  /** The streams it reads. */
  readonly inputs: readonly string[];
  /** The topics it publishes to. */
  readonly outputs: readonly string[];
}

interface Step {
  readonly task: Wiring;
  /** How it was reached, as a person reads it. */
  readonly path: readonly string[];
}

/**
 * Looks for a way from the outputs of a task back to its inputs, through streams and other tasks, and
 * answers the shortest one: task, topic, stream, task and so on. `streamsOf` tells which streams a topic
 * feeds.
 */
export function findCycle(
  start: Wiring,
  others: readonly Wiring[],
  streamsOf: (topicName: string) => readonly string[],
): readonly string[] | undefined {
  const tasks = [start, ...others.filter((task) => task.taskId !== start.taskId)];
  const readers = new Map<string, Wiring[]>();
  for (const task of tasks) {
    for (const stream of task.inputs) readers.set(stream, [...(readers.get(stream) ?? []), task]);
  }
  // What is behind a task or a stream is looked at once, by the shortest way there.
  const seen = new Set<string>();
  const followed = new Set<string>();
  const waiting: Step[] = [{ task: start, path: [`task ${start.taskId}`] }];
  for (const { task, path } of waiting) {
    for (const topic of task.outputs) {
      for (const stream of streamsOf(topic)) {
        if (followed.has(stream)) continue;
        followed.add(stream);
        for (const reader of readers.get(stream) ?? []) {
          const next = [...path, `topic ${topic}`, `stream ${stream}`, `task ${reader.taskId}`];
          if (reader.taskId === start.taskId) return next;
          if (seen.has(reader.taskId)) continue;
          seen.add(reader.taskId);
          waiting.push({ task: reader, path: next });
        }
      }
    }
  }
  return undefined;
}

/**
 * Looks for a task that would feed itself once topics feed other streams than before. Only what a topic
 * feeds beside what it fed can close a circle, so a change that opens one is never refused.
 */
export function findClosedCycle(
  tasks: readonly Wiring[],
  before: (topicName: string) => readonly string[],
  after: (topicName: string) => readonly string[],
): readonly string[] | undefined {
  for (const task of tasks) {
    const feedsMore = task.outputs.some((topic) => {
      const fed = new Set(before(topic));
      return after(topic).some((stream) => !fed.has(stream));
    });
    const path = feedsMore ? findCycle(task, tasks, after) : undefined;
    if (path !== undefined) return path;
  }
  return undefined;
}
