import { readFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type DuckDBConnection, DuckDBInstance, StatementType } from '@duckdb/node-api';
import type { Failure, PlanRequest, RunnerAnswer, RunnerOptions, RunRequest } from '../protocol.ts';
import { explained } from './explained.ts';
import { describeFailure } from './failure.ts';
import { lockedSettings } from './locks.ts';
import { Planner } from './planner.ts';
import { ResultTable } from './result-table.ts';
import { quotedName, quotedText } from './type-names.ts';

type WithoutId<T> = T extends unknown ? Omit<T, 'id'> : never;

/** The engine of one organization. It does one thing at a time. */
export interface Runner {
  handle(request: PlanRequest | RunRequest): Promise<WithoutId<RunnerAnswer>>;
  interrupt(): void;
}

/**
 * Two engines, so that the statements of people can write nothing: one runs them and may read the
 * organization's files and nothing else, the other takes what comes out and writes it to the scratch folder.
 */
export async function startRunner(options: RunnerOptions): Promise<Runner> {
  const instance = await DuckDBInstance.create(':memory:', {
    memory_limit: `${options.memoryBytes}B`,
    threads: String(options.threads),
    temp_directory: join(options.scratch, 'temp'),
    max_temp_directory_size: `${options.temporaryBytes}B`,
  });
  const connection = await instance.connect();
  await nameDatabase(connection, options.databaseName);
  const state = join(options.scratch, 'state');
  const readable = ['.', state].map(quotedText).join(', ');
  // The same files are read by one query after the other.
  await connection.run('set parquet_metadata_cache = true');
  await connection.run(`set allowed_directories = [${readable}]`);
  for (const setting of [...lockedSettings, 'set lock_configuration = true']) await connection.run(setting);
  const results = await ResultTable.open(options);
  const planner = new Planner();
  const views = new Map<string, string>();
  let interrupted = false;

  async function setViews(wanted: RunRequest['views']): Promise<void> {
    const names = new Map(wanted.map((view) => [view.name, view.sql]));
    for (const name of [...views.keys()]) {
      if (names.has(name)) continue;
      await connection.run(`drop view if exists ${quotedName(name)}`);
      views.delete(name);
    }
    for (const [name, sql] of names) {
      if (views.get(name) === sql) continue;
      views.delete(name);
      await connection.run(`create or replace view ${quotedName(name)} as ${sql}`);
      views.set(name, sql);
    }
  }

  async function run(request: RunRequest): Promise<WithoutId<RunnerAnswer>> {
    const began = performance.now();
    await mkdir(join(options.scratch, request.folder), { recursive: true });
    await setViews(request.views);
    if (!(await reads(connection, request.sql))) return onlyReads;
    const readBefore = bytesRead();
    const statement = await connection.prepare(request.sql);
    try {
      if (
        statement.statementType !== StatementType.SELECT &&
        statement.statementType !== StatementType.EXPLAIN
      ) {
        return onlyReads;
      }
      const result = await statement.stream();
      const table = await results.begin(result.columnNames(), result.columnTypes());
      for (;;) {
        const chunk = await result.fetchChunk();
        if (chunk === null || chunk.rowCount === 0) break;
        if (interrupted) return failure('Interrupt', 'Interrupted!');
        if (!(await table.append(chunk))) return failure('Result', 'too large');
      }
      const bytesScanned = bytesRead() - readBefore;
      if (!(await table.write(join(options.scratch, request.folder)))) return failure('Result', 'too large');
      return {
        kind: 'ran',
        columns: table.columns,
        rows: table.rows,
        bytesScanned,
        milliseconds: performance.now() - began,
      };
    } finally {
      statement.destroySync();
      await results.clear();
    }
  }

  return {
    async handle(request) {
      interrupted = false;
      try {
        if (request.kind === 'plan') return { kind: 'planned', plan: await planner.plan(request) };
        return await run(request);
      } catch (error) {
        return { kind: 'failed', ...describeFailure(error) };
      }
    },
    interrupt() {
      interrupted = true;
      connection.interrupt();
      planner.interrupt();
      results.interrupt();
    },
  };
}

/**
 * Whether a text is one statement that reads, or EXPLAIN of one. The parser has found so before, but
 * nothing else may ever get further here: some statements write files when they are merely prepared.
 */
async function reads(connection: DuckDBConnection, sql: string): Promise<boolean> {
  const asked = 'select json_serialize_sql($1::varchar)::varchar';
  const reader = await connection.runAndReadAll(asked, [explained(sql)]);
  // The begin says it: the tree itself may be long.
  return String(reader.getRows()[0]?.[0]).startsWith('{"error":false');
}

/** Tables are found under the organization's name too, as in `acme.clicks`, unless it is a name of DuckDB's. */
async function nameDatabase(connection: DuckDBConnection, name: string): Promise<void> {
  if (['memory', 'system', 'temp', 'main', 'information_schema', 'pg_catalog'].includes(name.toLowerCase()))
    return;
  await connection.run(`attach ':memory:' as ${quotedName(name)}`);
  await connection.run(`use ${quotedName(name)}`);
}

const onlyReads = failure('Permission', 'Only statements that read can be run.');

function failure(type: string, message: string): Omit<Failure, 'id'> {
  return { kind: 'failed', type, message };
}

/** The bytes that this process has read so far; nothing but DuckDB reads much here. */
function bytesRead(): number {
  try {
    return Number(/^rchar: (\d+)/.exec(readFileSync('/proc/self/io', 'latin1'))?.[1] ?? 0);
  } catch {
    return 0;
  }
}
