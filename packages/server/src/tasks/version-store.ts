import type { Queries, TaskAddress } from './task-store.ts';

/** What is left to clear up of a version: its code and its key. */
export interface FormerVersion {
  readonly sessionId: string;
  readonly keyId: string;
}

/**
 * Deletes versions of a task that come after the newest ones, not counting those to be spared, and answers
 * what they had.
 */
export async function deleteOldVersions(
  queries: Queries,
  address: TaskAddress,
  bounds: { readonly newest: number; readonly spared: readonly number[]; readonly atOnce: number },
): Promise<FormerVersion[]> {
  const ofTask = queries
    .selectFrom('task_versions')
    .select(['version', 'session_id', 'key_id'])
    .where('organization_id', '=', address.organizationId)
    .where('task_id', '=', address.taskId);
  const rows = await (bounds.spared.length === 0 ? ofTask : ofTask.where('version', 'not in', bounds.spared))
    .orderBy('version', 'desc')
    .limit(bounds.atOnce)
    .offset(bounds.newest)
    .execute();
  if (rows.length === 0) return [];
  await queries
    .deleteFrom('task_versions')
    .where('organization_id', '=', address.organizationId)
    .where('task_id', '=', address.taskId)
    .where(
      'version',
      'in',
      rows.map((row) => row.version),
    )
    .execute();
  return rows.map((row) => ({ sessionId: row.session_id, keyId: row.key_id }));
}
