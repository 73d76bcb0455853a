import type { ConsumerRunner } from '../consumers/runner.ts';
import type { Database } from '../database/database.ts';
import type { ApiKeys } from '../identity/api-keys.ts';
import type { ObjectStore } from '../objects/objects.ts';
import type { Clock } from '../platform/clock.ts';
import type { Log } from '../platform/log.ts';
import type { Random } from '../platform/random.ts';
import type { Topics } from '../topics/topics.ts';
import type { Code } from './code.ts';
import type { Execution } from './execution/execution.ts';
import type { TaskLog } from './logs/task-log.ts';
import type { Sealing } from './sealing.ts';
import type { TaskRuns } from './task-runs.ts';
import type { TaskAddress } from './task-store.ts';
import type { Turns } from './turns.ts';

/** What the services of this room work with. */
export interface TaskParts {
  readonly database: Database;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly objects: ObjectStore;
  readonly keys: ApiKeys;
  readonly topics: Topics;
  readonly runner: ConsumerRunner;
  readonly execution: Execution;
  readonly code: Code;
  readonly sealing: Sealing;
  readonly logs: TaskLog;
  readonly runs: TaskRuns;
  /** Changes of one task, one after the other. */
  readonly turns: Turns;
  readonly nodeId: string;
  readonly publicUrl: () => string;
  /** Aborted when the service stops. */
  readonly stopping: AbortSignal;
}

/** The name under which the changes of a task take turns. */
export function turnOf({ organizationId, taskId }: TaskAddress): string {
  return `${organizationId}/${taskId}`;
}
