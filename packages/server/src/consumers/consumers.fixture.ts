import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Database } from '../database/database.ts';
import { DatabaseUnavailableError } from '../database/errors.ts';
import type { AppendEntry, EventLog, EventRecord } from '../events/events.ts';
import { partitionOf } from '../events/partition.ts';
import { openSqliteEventLog } from '../events/sqlite/sqlite-event-log.ts';
import { systemClock } from '../platform/clock.ts';
import { type Log, silentLog } from '../platform/log.ts';
import { systemRandom } from '../platform/random.ts';
import type { Consumer } from './consumer.ts';
import { ConsumerRunner } from './runner.ts';
import type { RunnerLimits, RunnerTimings } from './settings.ts';

export const organizationId = 'o1';

/** The event log as it is on a laptop, in a place of its own. */
export async function openTestEvents(): Promise<{ events: EventLog; close(): Promise<void> }> {
  const directory = await mkdtemp(join(tmpdir(), 'millrace-consumers-'));
  const events = await openSqliteEventLog({
    directory,
    clock: systemClock,
    onFatal: (error) => {
      throw error;
    },
  });
  return {
    events,
    close: async () => {
      await events.close();
      await rm(directory, { recursive: true });
    },
  };
}

/** A log as an object whose parts can be replaced. */
export function wayTo(events: EventLog): EventLog {
  return {
    append: (entries) => events.append(entries),
    read: (address, after, limits) => events.read(address, after, limits),
    bounds: (topic) => events.bounds(topic),
    topics: (organizationId) => events.topics(organizationId),
    trim: (address, through) => events.trim(address, through),
    offsetAt: (address, time) => events.offsetAt(address, time),
    listen: (hear) => events.listen(hear),
    check: () => events.check(),
    close: () => events.close(),
  };
}

/** Polls until it holds, with a bound. */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  milliseconds = 15_000,
): Promise<void> {
  const end = performance.now() + milliseconds;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`Not within ${milliseconds} ms: ${what}`);
    await delay(3);
  }
}

export function message(key: string, text: string, other: Partial<AppendEntry> = {}): AppendEntry {
  return {
    organizationId,
    topicName: 'orders',
    partition: partitionOf(key),
    key,
    id: `${key}:${text}`,
    deduplicate: false,
    acceptedAt: Date.now(),
    mediaType: 'text/plain',
    routes: { streams: ['orders'], lake: false, store: false },
    body: Buffer.from(text),
    ...other,
  };
}

export function textOf(record: EventRecord): string {
  return Buffer.from(record.body).toString();
}

/** Short times, so that a test need not wait. */
export const quick: RunnerTimings = {
  leaseMilliseconds: 400,
  heartbeatMilliseconds: 80,
  pollMilliseconds: 500,
  drainMilliseconds: 2_000,
  retentionMilliseconds: 0,
};

export interface NodeOptions {
  readonly timings?: Partial<RunnerTimings>;
  readonly limits?: Partial<RunnerLimits>;
  readonly monotonic?: () => number;
  readonly log?: Log;
}

export function startNode(
  database: Database,
  events: EventLog,
  nodeId: string,
  options: NodeOptions = {},
): ConsumerRunner {
  return new ConsumerRunner({
    log: silentLog,
    ...options,
    database,
    events,
    clock: systemClock,
    random: systemRandom,
    nodeId,
    timings: { ...quick, ...options.timings },
  });
}

/** A consumer that does what the test says, with quick retries. */
export function consumer(
  handle: Consumer['handle'],
  other: Partial<Omit<Consumer, 'handle'>> = {},
): Consumer {
  return {
    id: `task/${organizationId}/t1`,
    organizationId,
    wants: (topicName) => topicName === 'orders',
    selects: (record) => record.routes.streams.includes('orders'),
    batchSize: 10,
    concurrency: 1,
    maxAttempts: 3,
    retry: { firstMilliseconds: 5, mostMilliseconds: 40 },
    handle,
    ...other,
  };
}

/** A way to a database that can be cut, as for a node that lost its network, and be mended. */
export function fragile(database: Database): Database & { cut(): void; mend(): void } {
  let isCut = false;
  const fail = () => {
    throw new DatabaseUnavailableError('The way to the database is cut');
  };
  const query = database.query.withPlugin({
    transformQuery: ({ node }) => (isCut ? fail() : node),
    transformResult: async ({ result }) => (isCut ? fail() : result),
  });
  return {
    ...database,
    query,
    transaction: async (work) => {
      if (isCut) fail();
      const result = await database.transaction(work);
      // It is committed, and who asked for it does not hear so.
      return isCut ? fail() : result;
    },
    announce: async (channel, payload) => {
      if (isCut) fail();
      await database.announce(channel, payload);
    },
    cut: () => {
      isCut = true;
    },
    mend: () => {
      isCut = false;
    },
  };
}
