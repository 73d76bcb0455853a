import type { Gate } from '../platform/gate.ts';
import { Problem, problem } from '../platform/problem.ts';
import { randomId } from '../platform/random.ts';
import { endDeployment, noteKey } from './deployment-store.ts';
import { beginUpdate, deployed, failed } from './life-cycle.ts';
import { clearUp, type RetiredVersions, retireOldVersions } from './old-versions.ts';
import type { TaskParts } from './parts.ts';
import { keyPlace } from './runnable.ts';
import type { VersionSettings } from './settings.ts';
import { consumerIdOf } from './task-run.ts';
import { type TaskVersion, versionAnswer } from './task-status.ts';
import {
  changeTask,
  findTask,
  insertTask,
  insertVersion,
  type Queries,
  type Task,
  type TaskAddress,
  type Version,
} from './task-store.ts';
import { tryVersion } from './trial.ts';
import type { OrganizationReference } from './version.ts';
import { cycleOf } from './wiring.ts';

/** What is to be deployed. */
export interface Order {
  readonly address: TaskAddress;
  readonly organization: OrganizationReference;
  readonly sessionId: string;
  readonly settings: VersionSettings;
  readonly description: string;
  readonly isSwitch: boolean;
}

/** One deployment, from a claimed upload to a version. */
export class Deployment {
  readonly #parts: TaskParts;
  readonly #gate: Gate;
  readonly #order: Order;

  constructor(parts: TaskParts, gate: Gate, order: Order) {
    this.#parts = parts;
    this.#gate = gate;
    this.#order = order;
  }

  async run(): Promise<TaskVersion | Problem> {
    const { organization, address } = this.#order;
    let keyId: string | undefined;
    try {
      const version = await this.#begin();
      keyId = version.keyId;
      const flaw = await tryVersion(this.#parts, this.#gate, organization, address.taskId, version);
      if (flaw !== undefined) return await this.#fail(keyId, flaw);
      const finished = await this.#finish(version);
      if (finished instanceof Problem) return await this.#fail(keyId, finished);
      await this.#parts.runs.changed(address);
      await clearUp(this.#parts, address, finished.retired);
      return versionAnswer(address.taskId, finished.made);
    } catch (error) {
      const { log, stopping } = this.#parts;
      if (!stopping.aborted)
        log.error({ event: 'tasks.deploy-failed', ...address, error }, 'a deployment failed');
      return await this.#fail(
        keyId,
        problem('INTERNAL', 'The service could not deploy it. Upload it again.'),
      );
    }
  }

  /** Makes the task visible, and a key for what will be the next version. */
  async #begin(): Promise<Version> {
    const { database, clock, keys, nodeId, sealing, runner, logs } = this.#parts;
    const { address, sessionId, settings, description, isSwitch } = this.#order;
    if ((await findTask(database.query, address)) === undefined) {
      // What a task of this name may have left when it was deleted.
      await runner.forget(address.organizationId, consumerIdOf(address));
      await logs.forget(address.organizationId, address.taskId);
    }
    return database.transaction(async (transaction) => {
      const task = await this.#findOrMake(transaction);
      await changeTask(transaction, task, beginUpdate(task, nodeId, isSwitch), clock.now());
      const number = task.lastVersion + 1;
      const key = await keys.createForTask(transaction, {
        ...address,
        description: `version ${number} of the task ${address.taskId}`,
        outputs: settings.outputQueueNames,
      });
      await noteKey(transaction, sessionId, key.id);
      const sealedKey = sealing.seal(key.secret, keyPlace(address, sessionId));
      return { number, sessionId, description, keyId: key.id, sealedKey, settings };
    });
  }

  /** Makes the version exist. The number is given now: another node may have been faster. */
  async #finish(version: Version): Promise<{ made: Version; retired: RetiredVersions } | Problem> {
    const { database, clock, topics } = this.#parts;
    const { address, sessionId, settings, description, isSwitch } = this.#order;
    return database.transaction(async (transaction) => {
      // Once more: another task or a topic may have closed the circle meanwhile.
      const document = await topics.read(transaction, address.organizationId);
      const cycle = await cycleOf(transaction, document, address, settings);
      if (cycle !== undefined) return problem('TASK_CYCLE', cycle);
      const task = await this.#findOrMake(transaction);
      const made = { ...version, number: task.lastVersion + 1 };
      const outcome = { status: 'SUCCESS', version: made.number, description } as const;
      if (!(await endDeployment(transaction, sessionId, outcome, clock.now())))
        return problem('SESSION_USED');
      await insertVersion(transaction, address, made, clock.now());
      const change = deployed(task, made.number, isSwitch);
      await changeTask(transaction, task, change, clock.now());
      return { made, retired: await retireOldVersions(this.#parts, transaction, task, change.activeVersion) };
    });
  }

  async #findOrMake(queries: Queries): Promise<Task> {
    const { clock, random } = this.#parts;
    const { address } = this.#order;
    const found = await findTask(queries, address);
    const first = { life: randomId(random), phase: 'CREATING', now: clock.now() } as const;
    return found ?? (await insertTask(queries, address, first));
  }

  async #fail(keyId: string | undefined, why: Problem): Promise<Problem> {
    const { address, sessionId } = this.#order;
    await endUnsuccessfully(this.#parts, address, sessionId, keyId, why.detail);
    return why;
  }
}

/** Leaves nothing of a deployment but the reason why it failed. */
export async function endUnsuccessfully(
  parts: TaskParts,
  address: TaskAddress,
  sessionId: string,
  keyId: string | undefined,
  reason: string,
): Promise<void> {
  const { database, clock, keys, code, log } = parts;
  const retired = await database.transaction(async (transaction) => {
    const isMine = await endDeployment(
      transaction,
      sessionId,
      { status: 'FAILED', error: reason },
      clock.now(),
    );
    if (!isMine) return [];
    const task = await findTask(transaction, address);
    if (task?.updatingNode !== undefined) {
      await changeTask(transaction, task, failed(task, reason), clock.now());
    }
    const ids = keyId === undefined ? [] : [keyId];
    return keys.retireTaskKeys(transaction, address.organizationId, ids);
  });
  await keys.revoked(retired);
  try {
    await code.forget(address, sessionId);
    await code.delete(address.organizationId, sessionId);
  } catch (error) {
    log.warn(
      { event: 'tasks.code-left', ...address, error },
      'the code of a failed deployment is still there',
    );
  }
}
