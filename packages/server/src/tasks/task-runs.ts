import type { ConsumerRunner } from '../consumers/runner.ts';
import type { Database } from '../database/database.ts';
import type { Clock } from '../platform/clock.ts';
import type { Log } from '../platform/log.ts';
import type { Random } from '../platform/random.ts';
import type { Topics } from '../topics/topics.ts';
import type { Code } from './code.ts';
import { uploadsInUse } from './deployment-store.ts';
import type { Execution, InvocationResult } from './execution/execution.ts';
import { isToRun, rests, runs } from './life-cycle.ts';
import { makeRunnable } from './runnable.ts';
import type { Sealing } from './sealing.ts';
import { consumerIdOf, type InvocationKind, TaskRun } from './task-run.ts';
import {
  changeTask,
  findTask,
  findTaskWithActive,
  listActive,
  listTopicsOfConsumer,
  type Task,
  type TaskAddress,
  type TaskChange,
  type TaskWithActive,
  type Version,
} from './task-store.ts';
import { Turns } from './turns.ts';

export interface TaskRunsParts {
  readonly database: Database;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly topics: Topics;
  readonly runner: ConsumerRunner;
  readonly execution: Execution;
  readonly code: Code;
  readonly sealing: Sealing;
  readonly nodeId: string;
  readonly observe: (kind: InvocationKind, result: InvocationResult) => void;
}

const channel = 'tasks';

/**
 * What this node runs. The rows of tasks say what should run; `settle` makes it so, here, and every node
 * does it when it hears of a change. So a restart, a crash in the middle and a change on another node are
 * all the same case.
 */
export class TaskRuns {
  readonly #parts: TaskRunsParts;
  readonly #runs = new Map<string, TaskRun>();
  /** Why what should run does not. */
  readonly #troubles = new Map<string, string>();
  readonly #turns = new Turns();
  readonly #closing = new AbortController();
  readonly #endListening: (() => void)[];
  #isDraining = false;

  constructor(parts: TaskRunsParts) {
    this.#parts = parts;
    const { database, topics } = parts;
    this.#endListening = [
      database.listen(
        channel,
        (payload) => this.#hear(payload),
        () => void this.settleAll(),
      ),
      topics.listen(
        (organizationId) => void this.#refreshTopics(organizationId),
        () => void this.#refreshTopics(undefined),
      ),
    ];
  }

  /** The task on this node, if it runs here. */
  find(address: TaskAddress): TaskRun | undefined {
    return this.#runs.get(nameOf(address));
  }

  /** Why the task does not work as it should, if so. */
  trouble(address: TaskAddress): string | undefined {
    const name = nameOf(address);
    return this.#troubles.get(name) ?? this.#runs.get(name)?.trouble;
  }

  figures(): { tasks: number; processes: number; busy: number } {
    const sum = { tasks: this.#runs.size, processes: 0, busy: 0 };
    for (const run of this.#runs.values()) {
      const { processes, busy } = run.figures();
      sum.processes += processes;
      sum.busy += busy;
    }
    return sum;
  }

  /** Makes this node run what the row of the task says, and tells the other nodes to look as well. */
  async changed(address: TaskAddress): Promise<void> {
    await this.settle(address);
    const { database, nodeId } = this.#parts;
    await database.announce(channel, `${nodeId} ${address.organizationId} ${address.taskId}`);
  }

  /** Makes this node run what the row of the task says. Troubles are noted and looked at again later. */
  settle(address: TaskAddress): Promise<void> {
    const name = nameOf(address);
    return this.#turns.take(name, async () => {
      if (this.#closing.signal.aborted || this.#isDraining) return;
      try {
        const found = await findTaskWithActive(this.#parts.database.query, address);
        const trouble = await this.#settle(name, address, found);
        if (trouble === undefined) this.#troubles.delete(name);
        else this.#troubles.set(name, trouble);
      } catch (error) {
        if (this.#closing.signal.aborted) return;
        this.#troubles.set(name, 'The service could not start it, and tries again.');
        this.#parts.log.warn({ event: 'tasks.settle-failed', ...address, error }, 'a task is settled later');
      }
    });
  }

  /** Settles everything that runs here or should. */
  async settleAll(): Promise<void> {
    try {
      const wanted = await listActive(this.#parts.database.query);
      const addresses = new Map<string, TaskAddress>();
      for (const { task } of wanted) addresses.set(nameOf(task), task);
      for (const name of this.#runs.keys()) addresses.set(name, addressOf(name));
      for (const address of addresses.values()) {
        if (this.#closing.signal.aborted) return;
        await this.settle(address);
      }
    } catch (error) {
      this.#parts.log.warn({ event: 'tasks.settle-failed', error }, 'tasks are settled later');
    }
  }

  /** Resolves when a task that is to pause has nothing in hand here, and that was written down. */
  async rest(address: TaskAddress): Promise<void> {
    try {
      await this.find(address)?.pause();
      const task = await findTask(this.#parts.database.query, address);
      if (task !== undefined && !isToRun(task)) await this.#note(task, rests);
    } catch (error) {
      if (this.#closing.signal.aborted) return;
      this.#parts.log.warn({ event: 'tasks.note-failed', ...address, error }, 'a task is settled later');
    }
  }

  /** Hands out nothing more, because the service is stopping. What is in hand goes on. */
  drain(): void {
    this.#isDraining = true;
    for (const run of this.#runs.values()) void run.pause();
  }

  /** Starts nothing more. What runs is ended by the runner of consumers and by the execution. */
  async close(): Promise<void> {
    this.#closing.abort();
    for (const end of this.#endListening) end();
    await this.#turns.idle();
  }

  async #settle(
    name: string,
    address: TaskAddress,
    found: TaskWithActive | undefined,
  ): Promise<string | undefined> {
    const run = this.#runs.get(name);
    if (run !== undefined && (found?.active === undefined || found.task.life !== run.life)) {
      this.#runs.delete(name);
      await run.stop();
    }
    if (found === undefined) {
      const { code, database } = this.#parts;
      await code.forgetUnused(address, () => uploadsInUse(database.query, address));
    }
    if (found?.active === undefined) return undefined;
    const outcome = await this.#bring(name, address, { ...found, active: found.active });
    const present = this.#runs.get(name);
    if (!isToRun(found.task)) {
      void present?.pause();
      if (found.task.phase === 'PAUSING') void this.rest(address);
    } else if (present !== undefined) {
      if (present.isPaused) present.resume();
      if (present === outcome) await this.#note(found.task, runs);
    }
    return typeof outcome === 'string' ? outcome : undefined;
  }

  /** Has the active version run here, or answers why it cannot. */
  async #bring(
    name: string,
    address: TaskAddress,
    { task, active, organizationName }: TaskWithActive & { active: Version },
  ): Promise<TaskRun | string> {
    const { execution, database, topics } = this.#parts;
    const present = this.#runs.get(name);
    if (present?.version.number === active.number) return present;
    const missing = execution.refusal ?? execution.missing(active.settings.runtime);
    if (missing !== undefined) return missing;
    const organization = { id: address.organizationId, name: organizationName };
    const { signal } = this.#closing;
    const runnable = await makeRunnable(this.#parts, organization, address.taskId, active, signal);
    if ('refusal' in runnable) return runnable.refusal;
    if (present !== undefined) {
      present.switchTo(active, execution.open(runnable));
      return present;
    }
    const earlierTopics = await listTopicsOfConsumer(database.query, consumerIdOf(address));
    const document = await topics.get(address.organizationId);
    if (signal.aborted) return 'The service is stopping.';
    const isStopping = () => this.#isDraining;
    const options = { ...this.#parts, address, organization, life: task.life, earlierTopics, isStopping };
    const run = new TaskRun(options, active, execution.open(runnable), document);
    // Before the runner has had time to hand anything out.
    if (!isToRun(task)) void run.pause();
    this.#runs.set(name, run);
    return run;
  }

  /** Writes down what has become of a task, if it is still the same. */
  async #note(seen: Task, change: (task: Task) => TaskChange): Promise<void> {
    if (Object.keys(change(seen)).length === 0) return;
    const { database, clock } = this.#parts;
    await database.transaction(async (transaction) => {
      const task = await findTask(transaction, seen);
      if (task?.life !== seen.life || task.activeVersion !== seen.activeVersion) return;
      const changes = change(task);
      if (Object.keys(changes).length > 0) await changeTask(transaction, task, changes, clock.now());
    });
  }

  #hear(payload: string): void {
    const [nodeId, organizationId = '', taskId = ''] = payload.split(' ');
    if (nodeId !== this.#parts.nodeId) void this.settle({ organizationId, taskId });
  }

  async #refreshTopics(organizationId: string | undefined): Promise<void> {
    try {
      for (const run of this.#runs.values()) {
        const { id } = run.organization;
        if (organizationId === undefined || organizationId === id) {
          run.setTopics(await this.#parts.topics.get(id));
        }
      }
    } catch (error) {
      this.#parts.log.warn({ event: 'tasks.topics-failed', error }, 'topics of tasks could not be read');
    }
  }
}

function nameOf({ organizationId, taskId }: TaskAddress): string {
  return `${organizationId}/${taskId}`;
}

function addressOf(name: string): TaskAddress {
  const [organizationId = '', taskId = ''] = name.split('/');
  return { organizationId, taskId };
}
