import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach } from 'node:test';
import { zipOf } from '../../../../acceptance/zip.ts';
import { message, openTestEvents, quick, until } from '../consumers/consumers.fixture.ts';
import { ConsumerRunner } from '../consumers/runner.ts';
import type { Database } from '../database/database.ts';
import { organization } from '../database/rows.suite.ts';
import type { EventLog } from '../events/events.ts';
import { ApiKeys } from '../identity/api-keys.ts';
import { openFileStore } from '../objects/files/files.ts';
import { urlSigner } from '../objects/files/signature.ts';
import type { ObjectStore } from '../objects/objects.ts';
import { systemClock } from '../platform/clock.ts';
import { silentLog } from '../platform/log.ts';
import { Problem } from '../platform/problem.ts';
import { systemRandom } from '../platform/random.ts';
import { Topics } from '../topics/topics.ts';
import { codeKey } from './code.ts';
import type { Execution } from './execution/execution.ts';
import { inProcessExecution } from './in-process-execution.fixture.ts';
import { TaskLogs } from './logs/task-logs.ts';
import type { DeployRequest } from './settings.ts';
import { type TaskService, taskService } from './task-service.ts';
import type { TaskStatus, TaskVersion } from './task-status.ts';
import type { OrganizationReference } from './version.ts';
import { cycleOfTopics } from './wiring.ts';

export type OpenDatabase = () => Promise<{ database: Database; close(): Promise<void> }>;

/** One process of the service, as far as tasks need it. */
export interface Node extends TaskService {
  readonly nodeId: string;
  readonly keys: ApiKeys;
  readonly topics: Topics;
  readonly execution: Execution & { readonly running: ReadonlySet<string> };
  /** Ends it in order. */
  end(): Promise<void>;
}

export function good<T>(outcome: T | Problem): T {
  if (outcome instanceof Problem) assert.fail(`${outcome.code}: ${outcome.detail}`);
  return outcome;
}

export function refusal(outcome: unknown): Problem {
  assert.ok(outcome instanceof Problem, JSON.stringify(outcome));
  return outcome;
}

/** Code that tells the test what it was given. */
export const echo = 'export const handler = async (event) => globalThis.onEvent?.(event);';

export function taskSite(open: OpenDatabase) {
  let database: Database;
  let closeDatabase: () => Promise<void>;
  let events: EventLog;
  let closeEvents: () => Promise<void>;
  let objects: ObjectStore;
  let directory = '';
  let count = 0;
  let owner: OrganizationReference;
  const nodes = new Set<Node>();

  before(async () => {
    ({ database, close: closeDatabase } = await open());
    ({ events, close: closeEvents } = await openTestEvents());
    directory = await mkdtemp(join(tmpdir(), 'millrace-tasks-'));
    const signer = urlSigner(Buffer.alloc(32, 7), () => 'http://127.0.0.1:1');
    objects = await openFileStore({ directory: join(directory, 'objects'), signer });
  });
  after(async () => {
    for (const node of nodes) await node.end();
    await objects.close();
    await closeEvents();
    await closeDatabase();
    await rm(directory, { recursive: true });
  });
  beforeEach(async () => {
    for (const node of nodes) await node.end();
    // Whoever starts runs what there is, and that of another test is none of its business.
    await database.query.deleteFrom('tasks').execute();
    await database.query.deleteFrom('task_deployments').execute();
    count += 1;
    const row = {
      ...organization(`o${count}x${process.pid}`),
      name: `Acme${count}`,
      name_lower: `acme${count}`,
    };
    await database.query.insertInto('organizations').values(row).execute();
    owner = { id: row.id, name: row.name };
  });

  async function start(nodeId = 'n1'): Promise<Node> {
    const keys = new ApiKeys({
      database,
      clock: systemClock,
      random: systemRandom,
      log: silentLog,
      most: 500,
    });
    const topics = new Topics(database, systemClock, cycleOfTopics);
    const execution = inProcessExecution();
    const logs = new TaskLogs({ database, clock: systemClock, log: silentLog });
    const runner = new ConsumerRunner({
      database,
      events,
      clock: systemClock,
      random: systemRandom,
      log: silentLog,
      nodeId,
      timings: quick,
    });
    const service = taskService({
      database,
      clock: systemClock,
      random: systemRandom,
      log: silentLog,
      objects,
      keys,
      topics,
      runner,
      execution,
      logs,
      nodeId,
      publicUrl: () => 'http://millrace.test',
      dataDirectory: join(directory, nodeId),
      keySecret: 'a secret that all nodes share',
      limits: { codeUnzippedBytes: 1024 * 1024, codeEntries: 100 },
      observe: () => {},
    });
    await service.start();
    service.run();
    let ended: Promise<void> | undefined;
    const node: Node = {
      ...service,
      nodeId,
      keys,
      topics,
      execution,
      end: () => {
        nodes.delete(node);
        ended ??= (async () => {
          await service.close();
          await runner.close();
          await logs.close();
          await keys.close();
        })();
        return ended;
      },
    };
    nodes.add(node);
    return node;
  }

  const request: Omit<DeployRequest, 'codeUrl'> = {
    handler: 'index.handler',
    inputQueueNames: ['orders'],
    outputQueueNames: [],
    switchToNow: true,
  };

  /** Uploads code, and answers the session and the request that deploys it. */
  async function upload(
    node: Node,
    taskId: string,
    files: Record<string, string> | Buffer = { 'index.mjs': echo },
    more: Partial<DeployRequest> = {},
  ): Promise<{ sessionId: string; request: DeployRequest }> {
    const bytes = Buffer.isBuffer(files) ? files : zipOf(files);
    const made = await node.deployments.upload(owner.id, { taskId, contentLengthBytes: bytes.length });
    await objects.put(codeKey(owner.id, made.sessionId), bytes);
    return { sessionId: made.sessionId, request: { ...request, codeUrl: made.codeUrl, ...more } };
  }

  async function deploy(
    node: Node,
    taskId: string,
    files?: Record<string, string> | Buffer,
    more: Partial<DeployRequest> = {},
  ): Promise<TaskVersion | Problem> {
    const uploaded = await upload(node, taskId, files, more);
    const begun = await node.deployments.deploy(owner, taskId, uploaded.sessionId, uploaded.request);
    return begun instanceof Problem ? begun : begun.done;
  }

  const addressOf = (taskId: string) => ({ organizationId: owner.id, taskId });

  return {
    get database() {
      return database;
    },
    get events() {
      return events;
    },
    get objects() {
      return objects;
    },
    get directory() {
      return directory;
    },
    get owner() {
      return owner;
    },
    start,
    upload,
    deploy,
    addressOf,
    /** Publishes texts of one key to a topic that feeds the stream of its name. */
    publish: (key: string, texts: readonly string[], topicName = 'orders', streams = [topicName]) =>
      events.append(
        texts.map((text) =>
          message(key, text, {
            organizationId: owner.id,
            topicName,
            routes: { streams, lake: false, store: false },
          }),
        ),
      ),
    status: (node: Node, taskId: string): Promise<TaskStatus> => node.tasks.status(addressOf(taskId)),
    untilStatus: (node: Node, taskId: string, wanted: TaskStatus['status']) =>
      until(
        `${taskId} is ${wanted}`,
        async () => (await node.tasks.status(addressOf(taskId))).status === wanted,
      ),
    until,
  };
}
