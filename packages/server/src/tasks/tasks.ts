import { setTimeout as delay } from 'node:timers/promises';
import { Gate } from '../platform/gate.ts';
import { type Problem, problem } from '../platform/problem.ts';
import { deleteEnded, uploadsInUse } from './deployment-store.ts';
import { crowded, lostMilliseconds } from './deployments.ts';
import { beginUpdate, cutOff, failed, paused, resumed, switched } from './life-cycle.ts';
import { type TaskParts, turnOf } from './parts.ts';
import { consumerIdOf } from './task-run.ts';
import {
  statusAnswer,
  type TaskStatus,
  type TaskVersion,
  versionAnswer,
  versionNumber,
} from './task-status.ts';
import {
  changeTask,
  deleteTask,
  findTask,
  findTaskWithActive,
  findVersion,
  listTasks,
  listUpdating,
  listVersions,
  type Queries,
  type Task,
  type TaskAddress,
  type TaskChange,
  type Version,
} from './task-store.ts';
import { trialLimits, tryVersion } from './trial.ts';
import type { OrganizationReference } from './version.ts';
import { cycleOf } from './wiring.ts';

/** Tasks in one page of statusAll. */
const pageTasks = 100;
/** An answer to pause waits so long for what is in hand, which is nothing most of the time. */
const pauseMilliseconds = 200;

/**
 * The tasks of organizations: which there are, which version of each is active, and whether it is given
 * work. Changes of one task happen one after the other on a node, and each is a transaction on its row, so
 * that of two at once, on any nodes, the outcome is that of one order or the other.
 */
export class Tasks {
  readonly #parts: TaskParts;
  readonly #gate = new Gate(trialLimits);

  constructor(parts: TaskParts) {
    this.#parts = parts;
  }

  async status(address: TaskAddress): Promise<TaskStatus> {
    const { database, publicUrl, runs } = this.#parts;
    const found = await findTaskWithActive(database.query, address);
    return statusAnswer(address, found, publicUrl(), runs.trouble(address));
  }

  /** A page of tasks, and the id after which the next one begins. */
  async statusAll(
    organizationId: string,
    after: string | undefined,
  ): Promise<{ tasks: TaskStatus[]; next: string | undefined }> {
    const { database, publicUrl, runs } = this.#parts;
    const found = await listTasks(database.query, organizationId, after ?? '', pageTasks + 1);
    const page = found.slice(0, pageTasks);
    return {
      tasks: page.map((each) => statusAnswer(each.task, each, publicUrl(), runs.trouble(each.task))),
      next: found.length > pageTasks ? page.at(-1)?.task.taskId : undefined,
    };
  }

  async versions(address: TaskAddress): Promise<{ status: TaskStatus; versions: TaskVersion[] } | Problem> {
    const status = await this.status(address);
    if (status.status === 'NOTFOUND') return problem('TASK_NOT_FOUND');
    const versions = await listVersions(this.#parts.database.query, address);
    return { status, versions: versions.map((version) => versionAnswer(address.taskId, version)) };
  }

  /** Makes a version the active one, if it can run; if it cannot, everything stays as it is. */
  activate(organization: OrganizationReference, taskId: string, name: string): Promise<TaskStatus | Problem> {
    const address: TaskAddress = { organizationId: organization.id, taskId };
    return this.#inTurn(address, async () => {
      const { database, nodeId } = this.#parts;
      const number = versionNumber(name);
      const version = number === undefined ? undefined : await findVersion(database.query, address, number);
      const begun = await this.#change(address, (task) =>
        version === undefined || task.activeVersion === version.number ? {} : beginUpdate(task, nodeId, true),
      );
      if (begun === undefined) return problem('TASK_NOT_FOUND');
      if (version === undefined) {
        return problem('VERSION_NOT_FOUND', `The task has no version ${name}.`);
      }
      if (begun.activeVersion !== version.number) {
        const flaw = await this.#tryActivation(organization, address, version);
        await this.#change(address, async (task, transaction) => {
          // Once more: another task or a topic may have closed the circle meanwhile.
          const reason =
            flaw ??
            (await this.#cycleOf(transaction, address, version)) ??
            (await goneMeanwhile(transaction, address, version));
          return reason === undefined ? switched(task, version.number) : failed(task, reason);
        });
        await this.#parts.runs.changed(address);
      }
      return this.status(address);
    });
  }

  /** Hands out nothing more. What is in hand is finished; until then the task is PAUSING. */
  pause(address: TaskAddress): Promise<TaskStatus | Problem> {
    return this.#inTurn(address, async () => {
      if ((await this.#change(address, paused)) === undefined) return problem('TASK_NOT_FOUND');
      const { runs } = this.#parts;
      await runs.changed(address);
      await Promise.race([runs.rest(address), delay(pauseMilliseconds, undefined, { ref: false })]);
      return this.status(address);
    });
  }

  resume(address: TaskAddress): Promise<TaskStatus | Problem> {
    return this.#inTurn(address, async () => {
      if ((await this.#change(address, resumed)) === undefined) return problem('TASK_NOT_FOUND');
      await this.#parts.runs.changed(address);
      return this.status(address);
    });
  }

  /** Deletes a task with its versions, keys, logs and place in its streams. Their messages stay. */
  delete(address: TaskAddress): Promise<TaskStatus | Problem> {
    return this.#inTurn(address, async () => {
      const { database, keys, runs, runner, logs, code, log } = this.#parts;
      const removed = await database.transaction(async (transaction) => {
        const versions = await listVersions(transaction, address);
        const ids = versions.map((version) => version.keyId);
        const retired = await keys.retireTaskKeys(transaction, address.organizationId, ids);
        await deleteTask(transaction, address);
        await deleteEnded(transaction, address);
        return { versions, retired };
      });
      await keys.revoked(removed.retired);
      await runs.changed(address);
      await runner.forget(address.organizationId, consumerIdOf(address));
      await logs.forget(address.organizationId, address.taskId);
      try {
        await code.forgetUnused(address, () => uploadsInUse(database.query, address));
        for (const { sessionId } of removed.versions) await code.delete(address.organizationId, sessionId);
      } catch (error) {
        log.warn(
          { event: 'tasks.code-left', ...address, error },
          'the code of a deleted task is still there',
        );
      }
      return this.status(address);
    });
  }

  /** Whether there is such a task. */
  async exists(address: TaskAddress): Promise<boolean> {
    return (await findTask(this.#parts.database.query, address)) !== undefined;
  }

  /** Ends what a process that is gone was at, this node's own from before the start among it. */
  async recover(isStart: boolean): Promise<void> {
    const { database, clock, nodeId, runs } = this.#parts;
    const before = clock.now() - lostMilliseconds;
    for (const lost of await listUpdating(database.query, isStart ? nodeId : '', before)) {
      await this.#change(lost, (task) => (task.updatingNode === lost.updatingNode ? cutOff(task) : {}));
      if (!isStart) await runs.changed(lost);
    }
  }

  async #tryActivation(
    organization: OrganizationReference,
    address: TaskAddress,
    version: Version,
  ): Promise<string | undefined> {
    const { database, execution, log } = this.#parts;
    const missing = execution.refusal ?? execution.missing(version.settings.runtime);
    if (missing !== undefined) return missing;
    const cycle = await this.#cycleOf(database.query, address, version);
    if (cycle !== undefined) return cycle;
    try {
      const flaw = await tryVersion(this.#parts, this.#gate, organization, address.taskId, version);
      return flaw?.detail;
    } catch (error) {
      log.error({ event: 'tasks.activate-failed', ...address, error }, 'a version could not be tried');
      return 'The service could not try the version.';
    }
  }

  async #cycleOf(queries: Queries, address: TaskAddress, version: Version): Promise<string | undefined> {
    const document = await this.#parts.topics.read(queries, address.organizationId);
    return cycleOf(queries, document, address, version.settings);
  }

  /** Changes the row of a task, and answers what it is then; undefined when there is no such task. */
  #change(
    address: TaskAddress,
    change: (task: Task, transaction: Queries) => TaskChange | Promise<TaskChange>,
  ): Promise<Task | undefined> {
    const { database, clock } = this.#parts;
    return database.transaction(async (transaction) => {
      const task = await findTask(transaction, address);
      if (task === undefined) return undefined;
      const changes = await change(task, transaction);
      if (Object.keys(changes).length > 0) await changeTask(transaction, task, changes, clock.now());
      return { ...task, ...changes };
    });
  }

  async #inTurn<T>(address: TaskAddress, work: () => Promise<T>): Promise<T | Problem> {
    const { turns } = this.#parts;
    return turns.isCrowded(turnOf(address)) ? crowded() : turns.take(turnOf(address), work);
  }
}

/** A deployment on another node may have found that the version is one too many. */
async function goneMeanwhile(queries: Queries, address: TaskAddress, { number }: Version) {
  const isThere = (await findVersion(queries, address, number)) !== undefined;
  return isThere ? undefined : `The version ${number} was deleted meanwhile.`;
}
