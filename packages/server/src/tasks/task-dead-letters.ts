import type { NamedType } from '@millrace/contract';
import { timestamp } from '../platform/clock.ts';
import { type Problem, problem } from '../platform/problem.ts';
import type { TaskParts } from './parts.ts';
import { bodyText, streamOf } from './streams/batch.ts';
import { consumerIdOf } from './task-run.ts';
import { findTaskWithActive, type TaskAddress } from './task-store.ts';

export interface DeadLetterListing {
  readonly entries: NamedType<'DeadLetter'>[];
  readonly next: string | undefined;
}

/** The messages that a task gave up on. */
export class TaskDeadLetters {
  readonly #parts: Pick<TaskParts, 'database' | 'runner'>;

  constructor(parts: Pick<TaskParts, 'database' | 'runner'>) {
    this.#parts = parts;
  }

  async list(
    address: TaskAddress,
    after: string | undefined,
    limit: number,
  ): Promise<DeadLetterListing | Problem> {
    const { database, runner } = this.#parts;
    const found = await findTaskWithActive(database.query, address);
    if (found === undefined) return problem('TASK_NOT_FOUND');
    const inputs = new Set(found.active?.settings.inputQueueNames);
    const { organizationId } = address;
    const page = await runner.deadLetters.list(organizationId, consumerIdOf(address), after, limit);
    const entries = page.letters.map(({ id, topicName, record, attempts, error, failedAt }) => ({
      id,
      topic: topicName,
      stream: streamOf(record, inputs) ?? record.routes.streams[0] ?? topicName,
      messageKey: record.key,
      messageId: record.id,
      body: bodyText(record),
      attempts,
      error,
      failedAt: timestamp(failedAt),
    }));
    return { entries, next: page.next };
  }

  /** Gives some, or all, to this task again, and answers how many. */
  async redrive(address: TaskAddress, ids: readonly string[] | undefined): Promise<number | Problem> {
    const { database, runner } = this.#parts;
    if ((await findTaskWithActive(database.query, address)) === undefined) return problem('TASK_NOT_FOUND');
    return runner.deadLetters.redrive(address.organizationId, consumerIdOf(address), ids);
  }

  /** Throws all of them away, and answers how many. */
  async purge(address: TaskAddress): Promise<number | Problem> {
    const { database, runner } = this.#parts;
    if ((await findTaskWithActive(database.query, address)) === undefined) return problem('TASK_NOT_FOUND');
    return runner.deadLetters.purge(address.organizationId, consumerIdOf(address));
  }
}
