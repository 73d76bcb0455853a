import { type Problem, problem } from '../platform/problem.ts';
import type { OutputLine } from './execution/execution.ts';
import type { TaskParts } from './parts.ts';
import { findTask, type TaskAddress } from './task-store.ts';

/** What a task returned or threw when it was called by hand. */
export interface InvokeOutcome {
  readonly result?: unknown;
  readonly error?: { readonly type: string; readonly message: string };
  readonly logs: readonly OutputLine[];
  readonly durationMs: number;
}

/** Lines that an answer carries; the log of the task has all. */
const mostLines = 1000;

/** Runs the active version of a task once, also while the task is paused. */
export class Invocations {
  readonly #parts: Pick<TaskParts, 'database' | 'runs'>;

  constructor(parts: Pick<TaskParts, 'database' | 'runs'>) {
    this.#parts = parts;
  }

  async invoke(address: TaskAddress, event: unknown): Promise<InvokeOutcome | Problem> {
    const { database, runs } = this.#parts;
    const run = runs.find(address);
    if (run === undefined) {
      const task = await findTask(database.query, address);
      if (task === undefined) return problem('TASK_NOT_FOUND');
      const message =
        task.activeVersion === undefined
          ? 'The task has no active version. Activate one first.'
          : (runs.trouble(address) ?? 'The task is being started. Try again in a moment.');
      return { error: { type: 'Unavailable', message }, logs: [], durationMs: 0 };
    }
    const logs: OutputLine[] = [];
    const result = await run.invoke('invoke', {
      event: Buffer.from(JSON.stringify(event ?? null)),
      onLine: (line) => {
        if (logs.length < mostLines) logs.push(line);
      },
    });
    const { durationMs } = result;
    if (result.outcome === 'failure') {
      const { type, message } = result.error;
      return { error: { type, message }, logs, durationMs };
    }
    const answer = parse(result.payload);
    if (answer === undefined) {
      const message = 'The answer of the handler is not JSON.';
      return { error: { type: 'Runtime.MalformedAnswer', message }, logs, durationMs };
    }
    return { result: answer.value, logs, durationMs };
  }
}

function parse(payload: Uint8Array): { value: unknown } | undefined {
  if (payload.byteLength === 0) return { value: null };
  try {
    return {
      value: JSON.parse(Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString()),
    };
  } catch {
    return undefined;
  }
}
