import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AppendEntry, EventLog } from '../events/events.ts';
import { partitionOf } from '../events/partition.ts';
import { openSqliteEventLog, type SqliteEventLogOptions } from '../events/sqlite/sqlite-event-log.ts';
import { systemClock } from '../platform/clock.ts';

export const topic = { organizationId: 'acme', topicName: 'clicks' } as const;

/** A real event log in a folder of its own that says how many listen to it. */
export interface LogSite {
  readonly log: EventLog;
  listeners(): number;
  close(): Promise<void>;
}

export async function openLog(options: Partial<SqliteEventLogOptions> = {}): Promise<LogSite> {
  const directory = await mkdtemp(join(tmpdir(), 'millrace-ingest-'));
  const onFatal = (error: Error) => {
    throw error;
  };
  const log = await openSqliteEventLog({ directory, clock: systemClock, onFatal, ...options });
  let listeners = 0;
  return {
    log: {
      append: (entries) => log.append(entries),
      read: (address, after, limits) => log.read(address, after, limits),
      bounds: (address) => log.bounds(address),
      topics: (organizationId) => log.topics(organizationId),
      trim: (address, through) => log.trim(address, through),
      offsetAt: (address, acceptedAt) => log.offsetAt(address, acceptedAt),
      listen: (hear) => {
        const silence = log.listen(hear);
        listeners += 1;
        return () => {
          listeners -= 1;
          silence();
        };
      },
      check: () => log.check(),
      close: () => log.close(),
    },
    listeners: () => listeners,
    close: async () => {
      await log.close();
      await rm(directory, { recursive: true });
    },
  };
}

/** A message of a key as it is appended. */
export function entry(key: string, id: string, more: Partial<AppendEntry> = {}): AppendEntry {
  return {
    ...topic,
    partition: partitionOf(key),
    key,
    id,
    deduplicate: false,
    acceptedAt: Date.UTC(2026, 10, 15, 9, 30),
    mediaType: 'application/json',
    routes: { streams: [], lake: true, store: false },
    body: Buffer.from(JSON.stringify({ id })),
    ...more,
  };
}

/** Different keys that share a partition. */
export function neighbours(count: number): string[] {
  const keys: string[] = [];
  for (let number = 0; keys.length < count; number += 1) {
    if (partitionOf(`key-${number}`) === 3) keys.push(`key-${number}`);
  }
  return keys;
}
