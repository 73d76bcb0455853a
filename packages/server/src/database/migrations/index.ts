import { identity } from './0001-identity.ts';
import { organizations } from './0002-organizations.ts';
import { state } from './0003-state.ts';
import { consumers } from './0004-consumers.ts';
import { topics } from './0005-topics.ts';
import { lake } from './0006-lake.ts';
import { queries } from './0007-queries.ts';
import { tasks } from './0008-tasks.ts';
import { taskLogs } from './0009-task-logs.ts';
import type { Migration } from './migration.ts';

/** Every migration in the order in which it is applied. */
export const migrations: readonly Migration[] = [
  identity,
  organizations,
  state,
  consumers,
  topics,
  lake,
  queries,
  tasks,
  taskLogs,
];
