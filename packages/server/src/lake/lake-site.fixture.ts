import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { type DuckDBConnection, DuckDBInstance, type Json } from '@duckdb/node-api';
import { ConsumerRunner } from '../consumers/runner.ts';
import type { Database } from '../database/database.ts';
import { openSqliteDatabase } from '../database/sqlite/sqlite-database.ts';
import type { EventLog } from '../events/events.ts';
import { partitionOf } from '../events/partition.ts';
import { openSqliteEventLog } from '../events/sqlite/sqlite-event-log.ts';
import { type FileStore, openFileStore } from '../objects/files/files.ts';
import { urlSigner } from '../objects/files/signature.ts';
import { type AdjustableClock, adjustableClock, systemClock } from '../platform/clock.ts';
import { silentLog } from '../platform/log.ts';
import { Problem } from '../platform/problem.ts';
import { systemRandom } from '../platform/random.ts';
import { Topics } from '../topics/topics.ts';
import type { Catalog } from './catalog.ts';
import { databaseCatalog } from './catalog-store.ts';
import { Lake, type LakeOptions } from './lake.ts';

export const organization = { id: 'o1', name: 'acme' } as const;

/** In the middle of an hour, and past what a lock or lease of the present is. */
export const start = Date.UTC(2026, 10, 15, 9, 30);

export interface LakeSite {
  readonly directory: string;
  readonly database: Database;
  readonly events: EventLog;
  readonly topics: Topics;
  readonly objects: FileStore;
  readonly catalog: Catalog;
  readonly clock: AdjustableClock;
  readonly lake: Lake;
  /** Publishes messages, each under its own key unless told otherwise, at the time of the clock. */
  publish(topicName: string, messages: readonly (object | string)[], key?: string): Promise<void>;
  flush(...topicNames: string[]): Promise<void>;
  /** Runs SQL over the table of a topic, which is called `t`. */
  query(topicName: string, sql: string): Promise<Record<string, Json>[]>;
  /** Another lake over the same data, as after a crash or on another node with the same files. */
  reopen(options?: Partial<LakeOptions>): Promise<Lake>;
  /** One more node, beside those that there are. */
  join(): Promise<Lake>;
  /** Closes the lake and leaves the rest. */
  stop(): Promise<void>;
  close(): Promise<void>;
}

/** A lake with everything real around it, in a folder of its own. */
export async function openLakeSite(options: Partial<LakeOptions> = {}): Promise<LakeSite> {
  const directory = await mkdtemp(join(tmpdir(), 'millrace-lake-'));
  const onFatal = (error: Error) => {
    throw error;
  };
  const database = await openSqliteDatabase({
    path: join(directory, 'millrace.db'),
    clock: systemClock,
    onFatal,
  });
  await database.query
    .insertInto('organizations')
    .values({
      id: organization.id,
      name: organization.name,
      name_lower: organization.name,
      rate_limit_level: 'DEFAULT',
      created_at: start,
      created_by: 'someone',
    })
    .execute();
  const events = await openSqliteEventLog({ directory, clock: systemClock, onFatal });
  const clock = adjustableClock(start);
  const topics = new Topics(database, clock);
  const signer = urlSigner(Buffer.alloc(32, 1), () => 'http://127.0.0.1');
  const objects = await openFileStore({ directory: join(directory, 'objects'), signer });
  const runners: ConsumerRunner[] = [];
  const lakes: Lake[] = [];
  const open = async (more: Partial<LakeOptions>) => {
    const runner = new ConsumerRunner({
      database,
      events,
      clock: systemClock,
      random: systemRandom,
      log: silentLog,
      nodeId: `n${runners.length}`,
    });
    runners.push(runner);
    const lake = await Lake.open({
      database,
      events,
      topics,
      objects,
      objectsDirectory: objects.directory,
      dataDirectory: directory,
      clock,
      random: systemRandom,
      log: silentLog,
      register: (consumer) => runner.registerRanges(consumer),
      fileBytes: 64 * 1024 * 1024,
      fileMilliseconds: 60_000,
      cacheBytes: 2 ** 30,
      deletedTopicMilliseconds: 24 * 3_600_000,
      ...options,
      ...more,
    });
    await lake.start();
    lakes.push(lake);
    return lake;
  };
  const lake = await open({});
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  let count = 0;

  const closeLakes = async () => {
    for (const each of lakes.splice(0)) await each.close();
    for (const runner of runners.splice(0)) await runner.close();
  };
  return {
    directory,
    database,
    events,
    topics,
    objects,
    catalog: databaseCatalog(database),
    clock,
    get lake() {
      return lakes.at(-1) ?? lake;
    },
    publish: async (topicName, messages, key) => {
      const topic = await topics.resolve(organization.id, topicName);
      assert.ok(topic);
      const entries = messages.map((message) => {
        count += 1;
        const id = `m${count}`;
        const own = key ?? id;
        return {
          organizationId: organization.id,
          topicName,
          partition: partitionOf(own),
          key: own,
          id,
          deduplicate: false,
          acceptedAt: clock.now(),
          mediaType: 'application/json',
          routes: topic.routes,
          body: Buffer.from(typeof message === 'string' ? message : JSON.stringify(message)),
        };
      });
      const bytes = entries.reduce((sum, entry) => sum + entry.body.length, 0);
      if (topic.routes.lake) lakes.at(-1)?.follow(organization.id, topicName, bytes);
      await events.append(entries);
    },
    flush: async (...topicNames) => {
      await lakes.at(-1)?.flush(organization, topicNames, AbortSignal.timeout(30_000));
    },
    query: async (topicName, sql) => queryTable(connection, lakes.at(-1) ?? lake, topicName, sql),
    reopen: async (more = {}) => {
      await closeLakes();
      return open(more);
    },
    join: () => open({ dataDirectory: join(directory, `node${lakes.length}`) }),
    stop: closeLakes,
    close: async () => {
      await closeLakes();
      connection.closeSync();
      instance.closeSync();
      await objects.close();
      await events.close();
      await database.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

async function queryTable(
  connection: DuckDBConnection,
  lake: Lake,
  topicName: string,
  sql: string,
): Promise<Record<string, Json>[]> {
  const scan = await lake.scan(organization, topicName);
  assert.ok(scan, `${topicName} is a table`);
  // As the engine does it that is confined to the folder.
  const paths = scan.files.map(({ path }) => path);
  const absolute = paths.reduce(
    (text, path) => text.replace(`'${path}'`, `'${join(scan.root, path)}'`),
    scan.sql,
  );
  const reader = await connection.runAndReadAll(`WITH t AS (${absolute}) ${sql}`);
  return reader.getRowObjectsJson();
}

export function good<T>(outcome: T | Problem): T {
  if (outcome instanceof Problem) assert.fail(outcome.detail);
  return outcome;
}

/** Asks again until the answer is no longer undefined. */
export async function eventually<T>(what: string, ask: () => Promise<T | undefined>): Promise<T> {
  const end = performance.now() + 40_000;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    if (performance.now() > end) assert.fail(`${what}: not in time`);
    await pause(20);
  }
}
