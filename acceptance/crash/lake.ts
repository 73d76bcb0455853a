/**
 * Reads the lake with the product's own catalog and files: which files are live, and every row in them. The
 * service must have been stopped.
 */
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { DuckDBInstance } from '@duckdb/node-api';
import { figure } from '../harness/metrics.ts';
import { eventually } from '../harness/waiting.ts';
import type { StoredMessage } from './ledger.ts';

const caughtUpMilliseconds = 60_000;
const pollMilliseconds = 100;
const timesInARow = 5;

/** A message as a table of the lake has it. */
export interface LakeRow {
  readonly topicName: string;
  readonly id: string;
  readonly key: string;
  readonly text: string;
}

/** Resolves when the lake has taken in everything. It hears of a message a moment after it was acknowledged. */
export async function lakeCaughtUp(url: string): Promise<void> {
  let times = 0;
  await eventually(
    'the lake has caught up',
    caughtUpMilliseconds,
    async () => {
      const lag = await figure(url, 'millrace_consumers', { kind: 'lake', figure: 'lag' });
      times = lag === 0 ? times + 1 : 0;
      return times === timesInARow ? true : undefined;
    },
    pollMilliseconds,
  );
}

/** The rows of all live files, and how many files there are. */
export async function readLake(dataDirectory: string): Promise<{ rows: LakeRow[]; files: number }> {
  const database = new DatabaseSync(join(dataDirectory, 'millrace.db'), { readOnly: true });
  const files = database.prepare('select topic_name, key from lake_files where removed_at is null').all();
  database.close();
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  const rows: LakeRow[] = [];
  try {
    for (const { topic_name, key: fileKey } of files) {
      const path = join(dataDirectory, 'objects', 'objects', 'lake', String(fileKey));
      const reader = await connection.runAndReadAll(
        `SELECT _id, _key, id, key, sequence, filling FROM read_parquet('${path}', hive_partitioning = false)`,
      );
      for (const [rowId, rowKey, id, key, sequence, filling] of reader.getRows()) {
        const text = JSON.stringify({ id, key, sequence: Number(sequence), filling });
        rows.push({ topicName: String(topic_name), id: String(rowId), key: String(rowKey), text });
      }
    }
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
  return { rows, files: files.length };
}

/** Where the lake does not agree with the log: it must have every message once, as it was sent, and no other. */
export function lakeDisagreements(rows: readonly LakeRow[], stored: readonly StoredMessage[]): string[] {
  const wrong: string[] = [];
  const expected = new Map(stored.map((message) => [`${message.topicName}/${message.id}`, message]));
  const seen = new Set<string>();
  for (const row of rows) {
    const name = `${row.topicName}/${row.id}`;
    const message = expected.get(name);
    if (seen.has(name)) wrong.push(`the lake has ${name} twice`);
    else if (message === undefined) wrong.push(`the lake has ${name}, and the log has not`);
    else if (message.key !== row.key || message.text !== row.text) wrong.push(`the lake has another ${name}`);
    seen.add(name);
  }
  for (const name of expected.keys()) {
    if (!seen.has(name)) wrong.push(`the lake has no ${name}`);
  }
  return wrong;
}
