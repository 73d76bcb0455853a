import type { Gate } from '../platform/gate.ts';
import { type Problem, problem } from '../platform/problem.ts';
import type { TaskParts } from './parts.ts';
import { makeRunnable } from './runnable.ts';
import type { Version } from './task-store.ts';
import type { OrganizationReference } from './version.ts';

/** How long code may take from its start to its first request for work. */
const startMilliseconds = 60_000;
const longestReason = 4_000;
const stopped = 'The service stopped while this was under way. Upload the code again.';

export const trialLimits = { running: 2, waiting: 64 } as const;

/**
 * Unpacks the code of a version and starts it once. Answers why it cannot run, or undefined when it can.
 * Few are tried at a time, because unpacking and starting cost what the running tasks need.
 */
export async function tryVersion(
  parts: TaskParts,
  gate: Gate,
  organization: OrganizationReference,
  taskId: string,
  version: Version,
): Promise<Problem | undefined> {
  const outcome = await gate.run(async () => {
    const runnable = await makeRunnable(parts, organization, taskId, version, parts.stopping);
    if ('refusal' in runnable) return problem('CODE_INVALID', runnable.refusal);
    const limit = AbortSignal.timeout(startMilliseconds);
    const probed = await parts.execution.probe(runnable, AbortSignal.any([limit, parts.stopping]));
    if (probed.ok) return undefined;
    if (parts.stopping.aborted) return problem('SHUTTING_DOWN', stopped, { retryAfterSeconds: 5 });
    const late = `The code did not start within ${startMilliseconds / 1000} seconds.`;
    return problem('CODE_INVALID', limit.aborted ? late : probed.error.slice(0, longestReason));
  });
  if (outcome !== undefined) return outcome.value;
  const busy = 'Too many deployments are under way. Upload the code again in a moment.';
  return problem('OVERLOADED', busy, { retryAfterSeconds: 30 });
}
