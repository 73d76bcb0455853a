import type { Code } from './code.ts';
import type { Sealing } from './sealing.ts';
import type { TaskAddress, Version } from './task-store.ts';
import type { OrganizationReference, RunnableVersion } from './version.ts';

/** What the secret of a version's key is sealed for. */
export function keyPlace({ organizationId, taskId }: TaskAddress, sessionId: string): string {
  return `${organizationId}/${taskId}/${sessionId}`;
}

/** A version with its code on this node and its key, or why it cannot be had. */
export async function makeRunnable(
  parts: { readonly code: Code; readonly sealing: Sealing },
  organization: OrganizationReference,
  taskId: string,
  version: Version,
  signal: AbortSignal,
): Promise<RunnableVersion | { refusal: string }> {
  const address: TaskAddress = { organizationId: organization.id, taskId };
  const { settings, sessionId } = version;
  const prepared = await parts.code.prepare(address, sessionId, settings, signal);
  if ('refusal' in prepared) return prepared;
  return {
    organization,
    taskId,
    version: String(version.number),
    runtime: settings.runtime,
    handler: settings.handler,
    codeDirectory: prepared.directory,
    memoryMb: settings.memoryMb,
    timeoutSec: settings.timeoutSec,
    concurrency: settings.concurrency,
    environment: settings.environment,
    apiKey: parts.sealing.open(version.sealedKey, keyPlace(address, sessionId)),
  };
}
