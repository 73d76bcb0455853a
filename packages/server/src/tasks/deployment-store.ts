import type { TaskDeploymentRow } from '../database/schema.ts';
import type { Queries, TaskAddress } from './task-store.ts';

/** An upload, and what became of it when it was deployed. */
export interface Deployment extends TaskAddress {
  readonly sessionId: string;
  readonly status: TaskDeploymentRow['status'];
  readonly error: string | undefined;
  readonly version: number | undefined;
  readonly description: string | undefined;
  readonly keyId: string | undefined;
  readonly changedAt: number;
}

export async function insertUpload(
  queries: Queries,
  address: TaskAddress,
  sessionId: string,
  now: number,
): Promise<void> {
  await queries
    .insertInto('task_deployments')
    .values({
      session_id: sessionId,
      organization_id: address.organizationId,
      task_id: address.taskId,
      status: 'UPLOAD',
      error: null,
      version: null,
      description: null,
      node: null,
      key_id: null,
      changed_at: now,
    })
    .execute();
}

/** A session of this task; one of another task is none. */
export async function findDeployment(
  queries: Queries,
  address: TaskAddress,
  sessionId: string,
): Promise<Deployment | undefined> {
  const row = await queries
    .selectFrom('task_deployments')
    .selectAll()
    .where('session_id', '=', sessionId)
    .where('organization_id', '=', address.organizationId)
    .where('task_id', '=', address.taskId)
    .executeTakeFirst();
  return row && deploymentOf(row);
}

/** Takes an upload for a deployment. Of two at the same time one does. */
export async function claimUpload(
  queries: Queries,
  sessionId: string,
  node: string,
  now: number,
): Promise<boolean> {
  const result = await queries
    .updateTable('task_deployments')
    .set({ status: 'DEPLOYING', node, changed_at: now })
    .where('session_id', '=', sessionId)
    .where('status', '=', 'UPLOAD')
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** The uploads whose code a task needs: those of its versions, and those that are being deployed. */
export async function uploadsInUse(queries: Queries, address: TaskAddress): Promise<ReadonlySet<string>> {
  const versions = queries
    .selectFrom('task_versions')
    .select('session_id')
    .where('organization_id', '=', address.organizationId)
    .where('task_id', '=', address.taskId);
  const rows = await queries
    .selectFrom('task_deployments')
    .select('session_id')
    .where('organization_id', '=', address.organizationId)
    .where('task_id', '=', address.taskId)
    .where('status', '=', 'DEPLOYING')
    .union(versions)
    .execute();
  return new Set(rows.map((row) => row.session_id));
}

/** Uploads of a task that nobody deployed, without the newest ones. */
export async function listEarlierUploads(
  queries: Queries,
  address: TaskAddress,
  newest: number,
  limit: number,
): Promise<string[]> {
  const rows = await queries
    .selectFrom('task_deployments')
    .select('session_id')
    .where('organization_id', '=', address.organizationId)
    .where('task_id', '=', address.taskId)
    .where('status', '=', 'UPLOAD')
    .orderBy('changed_at', 'desc')
    .orderBy('session_id')
    .limit(limit)
    .offset(newest)
    .execute();
  return rows.map((row) => row.session_id);
}

/** Ends an upload that nobody deployed. False when somebody is deploying it by now. */
export async function dropUpload(
  queries: Queries,
  sessionId: string,
  error: string,
  changedAt: number,
): Promise<boolean> {
  const result = await queries
    .updateTable('task_deployments')
    .set({ status: 'FAILED', error, changed_at: changedAt })
    .where('session_id', '=', sessionId)
    .where('status', '=', 'UPLOAD')
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** Notes the key that was made for a deployment, so that it can be revoked if the process ends now. */
export async function noteKey(queries: Queries, sessionId: string, keyId: string): Promise<void> {
  await queries
    .updateTable('task_deployments')
    .set({ key_id: keyId })
    .where('session_id', '=', sessionId)
    .execute();
}

export type Outcome =
  | { readonly status: 'SUCCESS'; readonly version: number; readonly description: string }
  | { readonly status: 'FAILED'; readonly error: string };

/** Ends a deployment that is under way. False when it is none any more. */
export async function endDeployment(
  queries: Queries,
  sessionId: string,
  outcome: Outcome,
  now: number,
): Promise<boolean> {
  const result = await queries
    .updateTable('task_deployments')
    .set({ ...outcome, changed_at: now })
    .where('session_id', '=', sessionId)
    .where('status', '=', 'DEPLOYING')
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** Deployments that a node was at work on, or that somebody has been at for too long. */
export async function listDeploying(queries: Queries, node: string, before: number): Promise<Deployment[]> {
  const rows = await queries
    .selectFrom('task_deployments')
    .selectAll()
    .where('status', '=', 'DEPLOYING')
    .where((where) => where.or([where('node', '=', node), where('changed_at', '<', before)]))
    .execute();
  return rows.map(deploymentOf);
}

/** Sessions that ended, or were never deployed, before a time. */
export async function listOld(queries: Queries, before: number, limit: number): Promise<Deployment[]> {
  const rows = await queries
    .selectFrom('task_deployments')
    .selectAll()
    .where('status', 'in', ['UPLOAD', 'FAILED', 'SUCCESS'])
    .where('changed_at', '<', before)
    .limit(limit)
    .execute();
  return rows.map(deploymentOf);
}

export async function deleteDeployment(queries: Queries, sessionId: string): Promise<void> {
  await queries.deleteFrom('task_deployments').where('session_id', '=', sessionId).execute();
}

/** Forgets the deployments of a task that ended; uploads and those under way are for what comes after. */
export async function deleteEnded(queries: Queries, address: TaskAddress): Promise<void> {
  await queries
    .deleteFrom('task_deployments')
    .where('organization_id', '=', address.organizationId)
    .where('task_id', '=', address.taskId)
    .where('status', 'in', ['SUCCESS', 'FAILED'])
    .execute();
}

function deploymentOf(row: TaskDeploymentRow): Deployment {
  return {
    organizationId: row.organization_id,
    taskId: row.task_id,
    sessionId: row.session_id,
    status: row.status,
    error: row.error ?? undefined,
    version: row.version ?? undefined,
    description: row.description ?? undefined,
    keyId: row.key_id ?? undefined,
    changedAt: row.changed_at,
  };
}
