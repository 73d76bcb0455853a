/**
 * Reads everything back that the service has in its event log.
 *
 * This is the only place of the acceptance tests that uses code of the server. Over HTTP the past of a
 * topic cannot be read as it is in the log: with the partition and the offset of every record, also of
 * those that nobody should find. The service must have been stopped, because the log has one owner.
 */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { openSqliteEventLog } from '../../packages/server/src/events/sqlite/sqlite-event-log.ts';
import type { StoredMessage } from './ledger.ts';

const page = { records: 5_000, bytes: 8 * 1024 * 1024 };

/** All records of all topics, partition by partition in the order of their offsets. */
export async function readLog(dataDirectory: string): Promise<StoredMessage[]> {
  const log = await openSqliteEventLog({
    directory: dataDirectory,
    clock: { now: () => Date.now() },
    onFatal: (error) => {
      throw error;
    },
  });
  const stored: StoredMessage[] = [];
  try {
    for (const topic of await log.topics()) {
      for (const { partition, trimmedThrough, last } of await log.bounds(topic)) {
        let after = trimmedThrough;
        while (after < last) {
          const records = await log.read({ ...topic, partition }, after, page);
          if (records.length === 0) throw new Error(`${topic.topicName}/${partition} ends before ${last}`);
          for (const { offset, key, id, acceptedAt, body } of records) {
            if (offset <= after) throw new Error(`${topic.topicName}/${partition} has ${offset} twice`);
            after = offset;
            const text = Buffer.from(body).toString('utf8');
            stored.push({ topicName: topic.topicName, partition, offset, key, id, acceptedAt, text });
          }
        }
      }
    }
  } finally {
    await log.close();
  }
  return stored;
}

/** What SQLite itself finds wrong with the files of the data directory. */
export async function damages(dataDirectory: string): Promise<string[]> {
  const files = (await readdir(dataDirectory)).filter((name) => name.endsWith('.db'));
  return files.flatMap((name) => {
    const database = new DatabaseSync(join(dataDirectory, name));
    try {
      const found = database.prepare('pragma integrity_check').all();
      const texts = found.map((row) => String(row.integrity_check));
      return texts.filter((text) => text !== 'ok').map((text) => `${name}: ${text}`);
    } finally {
      database.close();
    }
  });
}
