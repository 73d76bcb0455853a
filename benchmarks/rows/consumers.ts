import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Consumer } from '../../packages/server/src/consumers/consumer.ts';
import { ConsumerRunner } from '../../packages/server/src/consumers/runner.ts';
import { openDatabase } from '../../packages/server/src/database/open.ts';
import { type EventLog, partitionCount } from '../../packages/server/src/events/events.ts';
import { partitionOf } from '../../packages/server/src/events/partition.ts';
import { openSqliteEventLog } from '../../packages/server/src/events/sqlite/sqlite-event-log.ts';
import { systemClock } from '../../packages/server/src/platform/clock.ts';
import { silentLog } from '../../packages/server/src/platform/log.ts';
import { systemRandom } from '../../packages/server/src/platform/random.ts';
import type { Row } from '../row.ts';
import { message } from '../site.ts';

const count = 200_000;
const topic = { organizationId: 'acme', topicName: 'clicks' };

/** A consumer that does nothing, at batches of a hundred, next to reading the same records from the log. */
export async function consumerThroughput(): Promise<Row> {
  const directory = await mkdtemp(join(tmpdir(), 'millrace-bench-'));
  const onFatal = (error: Error) => {
    throw error;
  };
  const database = await openDatabase({ dataDirectory: directory, clock: systemClock, onFatal });
  const events = await openSqliteEventLog({ directory, clock: systemClock, onFatal });
  try {
    await fill(events);
    const bare = await timed(() => readAll(events));
    const runner = new ConsumerRunner({
      database,
      events,
      clock: systemClock,
      random: systemRandom,
      log: silentLog,
      nodeId: 'bench',
    });
    const handled = await timed(() => consume(runner));
    await runner.close();
    return {
      what: 'consumer that does nothing, batch 100',
      figure: `${Math.round(count / handled)} messages/s`,
      bare: `read ${Math.round(count / bare)}/s`,
      ratio: bare / handled,
      bar: 'at least 25000/s (the bar of tasks)',
      reached: count / handled >= 25_000,
    };
  } finally {
    await events.close();
    await database.close();
    await rm(directory, { recursive: true });
  }
}

async function fill(events: EventLog): Promise<void> {
  const body = Buffer.from(message);
  const routes = { streams: ['clicks'], lake: false, store: false };
  for (let start = 0; start < count; start += 1000) {
    await events.append(
      Array.from({ length: 1000 }, (_value, index) => {
        const key = `k${(start + index) % 5000}`;
        return {
          ...topic,
          partition: partitionOf(key),
          key,
          id: `m${start + index}`,
          deduplicate: false,
          acceptedAt: Date.now(),
          mediaType: 'application/json',
          routes,
          body,
        };
      }),
    );
  }
}

async function readAll(events: EventLog): Promise<void> {
  for (let partition = 0; partition < partitionCount; partition += 1) {
    for (let after = 0; ; ) {
      const records = await events.read({ ...topic, partition }, after, {
        records: 100,
        bytes: 4 * 1024 * 1024,
      });
      const last = records.at(-1);
      if (last === undefined) break;
      after = last.offset;
    }
  }
}

function consume(runner: ConsumerRunner): Promise<void> {
  return new Promise((resolve) => {
    let left = count;
    const consumer: Consumer = {
      id: 'task/acme/nothing',
      organizationId: topic.organizationId,
      wants: () => true,
      selects: () => true,
      batchSize: 100,
      concurrency: 8,
      maxAttempts: 5,
      retry: { firstMilliseconds: 100, mostMilliseconds: 1000 },
      handle: async (batch) => {
        left -= batch.length;
        if (left <= 0) resolve();
        return [];
      },
    };
    runner.register(consumer);
  });
}

async function timed(work: () => Promise<void>): Promise<number> {
  const started = performance.now();
  await work();
  return (performance.now() - started) / 1000;
}
