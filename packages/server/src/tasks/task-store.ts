import type { Kysely } from 'kysely';
import type { Schema, TaskPhase, TaskRow, TaskUpdateStatus, TaskVersionRow } from '../database/schema.ts';
import type { VersionSettings } from './settings.ts';

export type Queries = Kysely<Schema>;

/** Which task of which organization. */
export interface TaskAddress {
  readonly organizationId: string;
  readonly taskId: string;
}

export interface Task extends TaskAddress {
  /** Tells it from one of the same name that was deleted before. */
  readonly life: string;
  readonly revision: number;
  readonly phase: TaskPhase;
  readonly activeVersion: number | undefined;
  readonly lastVersion: number;
  readonly updateStatus: TaskUpdateStatus | undefined;
  readonly updateReason: string | undefined;
  /** The node on which a deployment or activation is under way. */
  readonly updatingNode: string | undefined;
}

export interface Version {
  readonly number: number;
  /** The upload that holds its code. */
  readonly sessionId: string;
  readonly description: string;
  readonly keyId: string;
  readonly sealedKey: string;
  readonly settings: VersionSettings;
}

/** A task with its active version, where it has one. */
export interface TaskWithActive {
  readonly task: Task;
  readonly active: Version | undefined;
  readonly organizationName: string;
}

export type TaskChange = Partial<
  Pick<Task, 'phase' | 'activeVersion' | 'lastVersion' | 'updateStatus' | 'updateReason' | 'updatingNode'>
>;

export async function findTask(queries: Queries, address: TaskAddress): Promise<Task | undefined> {
  const row = await queries
    .selectFrom('tasks')
    .selectAll()
    .where('organization_id', '=', address.organizationId)
    .where('task_id', '=', address.taskId)
    .executeTakeFirst();
  return row && taskOf(row);
}

export async function insertTask(
  queries: Queries,
  address: TaskAddress,
  first: { life: string; phase: TaskPhase; now: number },
): Promise<Task> {
  const row: TaskRow = {
    organization_id: address.organizationId,
    task_id: address.taskId,
    life: first.life,
    revision: 1,
    phase: first.phase,
    active_version: null,
    last_version: 0,
    update_status: null,
    update_reason: null,
    updating_node: null,
    updated_at: first.now,
    created_at: first.now,
  };
  await queries.insertInto('tasks').values(row).execute();
  return taskOf(row);
}

/** Changes a task that was read in the same transaction. Fields that are given as undefined are emptied. */
export async function changeTask(
  queries: Queries,
  task: Task,
  change: TaskChange,
  now: number,
): Promise<void> {
  const next = { ...task, ...change };
  const result = await queries
    .updateTable('tasks')
    .set({
      revision: task.revision + 1,
      phase: next.phase,
      active_version: next.activeVersion ?? null,
      last_version: next.lastVersion,
      update_status: next.updateStatus ?? null,
      update_reason: next.updateReason ?? null,
      updating_node: next.updatingNode ?? null,
      updated_at: now,
    })
    .where('organization_id', '=', task.organizationId)
    .where('task_id', '=', task.taskId)
    .where('life', '=', task.life)
    .where('revision', '=', task.revision)
    .executeTakeFirst();
  if (result.numUpdatedRows === 0n) throw new Error(`The task ${task.taskId} is no longer what was read`);
}

/** Deletes a task with its versions. */
export async function deleteTask(queries: Queries, address: TaskAddress): Promise<void> {
  await queries
    .deleteFrom('tasks')
    .where('organization_id', '=', address.organizationId)
    .where('task_id', '=', address.taskId)
    .execute();
}

export async function insertVersion(
  queries: Queries,
  address: TaskAddress,
  version: Version,
  now: number,
): Promise<void> {
  await queries
    .insertInto('task_versions')
    .values({
      organization_id: address.organizationId,
      task_id: address.taskId,
      version: version.number,
      session_id: version.sessionId,
      description: version.description,
      key_id: version.keyId,
      sealed_key: version.sealedKey,
      created_at: now,
      settings: JSON.stringify(version.settings),
    })
    .execute();
}

export async function findVersion(
  queries: Queries,
  address: TaskAddress,
  number: number,
): Promise<Version | undefined> {
  const row = await queries
    .selectFrom('task_versions')
    .selectAll()
    .where('organization_id', '=', address.organizationId)
    .where('task_id', '=', address.taskId)
    .where('version', '=', number)
    .executeTakeFirst();
  return row && versionOf(row);
}

/** All versions of a task, oldest first. */
export async function listVersions(queries: Queries, address: TaskAddress): Promise<Version[]> {
  const rows = await queries
    .selectFrom('task_versions')
    .selectAll()
    .where('organization_id', '=', address.organizationId)
    .where('task_id', '=', address.taskId)
    .orderBy('version')
    .execute();
  return rows.map(versionOf);
}

const activeColumns = [
  'task_versions.version',
  'task_versions.session_id',
  'task_versions.description',
  'task_versions.key_id',
  'task_versions.sealed_key',
  'task_versions.settings',
] as const;

function tasksWithActive(queries: Queries) {
  return queries
    .selectFrom('tasks')
    .innerJoin('organizations', 'organizations.id', 'tasks.organization_id')
    .leftJoin('task_versions', (join) =>
      join
        .onRef('task_versions.organization_id', '=', 'tasks.organization_id')
        .onRef('task_versions.task_id', '=', 'tasks.task_id')
        .onRef('task_versions.version', '=', 'tasks.active_version'),
    )
    .selectAll('tasks')
    .select(activeColumns)
    .select('organizations.name as organization_name');
}

export async function findTaskWithActive(
  queries: Queries,
  address: TaskAddress,
): Promise<TaskWithActive | undefined> {
  const row = await tasksWithActive(queries)
    .where('tasks.organization_id', '=', address.organizationId)
    .where('tasks.task_id', '=', address.taskId)
    .executeTakeFirst();
  return row && withActiveOf(row);
}

/** A page of the tasks of an organization, by their ids. */
export async function listTasks(
  queries: Queries,
  organizationId: string,
  after: string,
  limit: number,
): Promise<TaskWithActive[]> {
  const rows = await tasksWithActive(queries)
    .where('tasks.organization_id', '=', organizationId)
    .where('tasks.task_id', '>', after)
    .orderBy('tasks.task_id')
    .limit(limit)
    .execute();
  return rows.map(withActiveOf);
}

/** The tasks that have an active version, of one organization or of all. */
export async function listActive(queries: Queries, organizationId?: string): Promise<TaskWithActive[]> {
  let query = tasksWithActive(queries).where('tasks.active_version', 'is not', null);
  if (organizationId !== undefined) query = query.where('tasks.organization_id', '=', organizationId);
  const rows = await query.orderBy('tasks.organization_id').orderBy('tasks.task_id').execute();
  return rows.map(withActiveOf);
}

/** The tasks on which a node was at work, or on which somebody has been for too long. */
export async function listUpdating(queries: Queries, node: string, before: number): Promise<Task[]> {
  const rows = await queries
    .selectFrom('tasks')
    .selectAll()
    .where('updating_node', 'is not', null)
    .where((where) => where.or([where('updating_node', '=', node), where('updated_at', '<', before)]))
    .execute();
  return rows.map(taskOf);
}

/** The topics in which a consumer has a place, whether or not they feed it now. */
export async function listTopicsOfConsumer(queries: Queries, consumerId: string): Promise<string[]> {
  const rows = await queries
    .selectFrom('consumer_shares')
    .select('topic_name')
    .distinct()
    .where('consumer_id', '=', consumerId)
    .execute();
  return rows.map((row) => row.topic_name);
}

function taskOf(row: TaskRow): Task {
  return {
    organizationId: row.organization_id,
    taskId: row.task_id,
    life: row.life,
    revision: row.revision,
    phase: row.phase,
    activeVersion: row.active_version ?? undefined,
    lastVersion: row.last_version,
    updateStatus: row.update_status ?? undefined,
    updateReason: row.update_reason ?? undefined,
    updatingNode: row.updating_node ?? undefined,
  };
}

type VersionColumns = Pick<
  TaskVersionRow,
  'version' | 'session_id' | 'description' | 'key_id' | 'sealed_key' | 'settings'
>;

function versionOf(row: VersionColumns): Version {
  // Written by us from a checked request, and never changed since.
  const settings: VersionSettings = JSON.parse(row.settings);
  return {
    number: row.version,
    sessionId: row.session_id,
    description: row.description,
    keyId: row.key_id,
    sealedKey: row.sealed_key,
    settings,
  };
}

type Nullable<T> = { [Key in keyof T]: T[Key] | null };

function withActiveOf(
  row: TaskRow & Nullable<VersionColumns> & { organization_name: string },
): TaskWithActive {
  const { version, session_id, description, key_id, sealed_key, settings } = row;
  const complete =
    version !== null &&
    session_id !== null &&
    description !== null &&
    key_id !== null &&
    sealed_key !== null &&
    settings !== null;
  return {
    task: taskOf(row),
    active: complete
      ? versionOf({ version, session_id, description, key_id, sealed_key, settings })
      : undefined,
    organizationName: row.organization_name,
  };
}
