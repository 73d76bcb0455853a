import { setTimeout as delay } from 'node:timers/promises';
import type { ArchiveLimits } from './archive/archive.ts';
import { Code } from './code.ts';
import { Deployments } from './deployments.ts';
import type { InvocationResult } from './execution/execution.ts';
import { Invocations } from './invocations.ts';
import type { TaskParts } from './parts.ts';
import { sealing } from './sealing.ts';
import { TaskDeadLetters } from './task-dead-letters.ts';
import type { InvocationKind } from './task-run.ts';
import { TaskRuns } from './task-runs.ts';
import { Tasks } from './tasks.ts';
import { Turns } from './turns.ts';

export interface TaskServiceOptions
  extends Omit<TaskParts, 'code' | 'sealing' | 'runs' | 'turns' | 'stopping'> {
  readonly dataDirectory: string;
  /** What the secrets of task keys are sealed with. */
  readonly keySecret: string;
  readonly limits: ArchiveLimits;
  readonly observe: (kind: InvocationKind, result: InvocationResult) => void;
}

/** Everything about tasks that the interface needs. */
export interface TaskService {
  readonly tasks: Tasks;
  readonly deployments: Deployments;
  readonly invocations: Invocations;
  readonly deadLetters: TaskDeadLetters;
  readonly runs: TaskRuns;
  /** Clears up after the process before. */
  start(): Promise<void>;
  /** Begins to run what should run. To be called when the service can be reached, because tasks will call it. */
  run(): void;
  /** To be called from time to time: forgets what is old, and sees to what a lost node was at. */
  sweep(): Promise<void>;
  /** Ends deployments under way and starts nothing more. Messages are handled until the runner closes. */
  close(): Promise<void>;
}

/** How long deployments under way may take to end when the service stops. */
const closeMilliseconds = 5_000;

export function taskService(options: TaskServiceOptions): TaskService {
  const stopping = new AbortController();
  const turns = new Turns();
  const made = {
    ...options,
    code: new Code(options),
    sealing: sealing(options.keySecret, options.random),
    turns,
    stopping: stopping.signal,
  };
  const runs = new TaskRuns(made);
  const parts: TaskParts = { ...made, runs };
  const tasks = new Tasks(parts);
  const deployments = new Deployments(parts);
  let settling = Promise.resolve();
  return {
    tasks,
    deployments,
    invocations: new Invocations(parts),
    deadLetters: new TaskDeadLetters(parts),
    runs,
    async start() {
      await made.code.sweep();
      await deployments.recover(true);
      await tasks.recover(true);
    },
    run() {
      settling = runs.settleAll();
    },
    async sweep() {
      await deployments.sweep();
      await tasks.recover(false);
      await runs.settleAll();
    },
    async close() {
      stopping.abort();
      // What does not end in time is found cut off at the next start.
      await Promise.race([turns.idle(), delay(closeMilliseconds, undefined, { ref: false })]);
      await runs.close();
      await settling;
    },
  };
}
