import { writeFile } from 'node:fs/promises';
import type { Database } from '../database/database.ts';
import { LakeUnavailableError } from '../lake/lake.ts';
import type { Clock } from '../platform/clock.ts';
import type { Failure, JobTable, QueryEngine, Statement, Success } from './engine.ts';
import type { QueryEnd, QueryRecord } from './query-store.ts';
import { writeStateSnapshot } from './state-snapshot.ts';
import type { StoredResults } from './stored-results.ts';
import {
  hasMeaningToEngine,
  type LakeTables,
  meant,
  namesUsed,
  type OrganizationReference,
  similarNames,
  stateTable,
  type TableDescription,
} from './tables.ts';

export interface ExecutionOptions {
  readonly database: Database;
  readonly clock: Clock;
  readonly engine: QueryEngine;
  readonly lake: LakeTables;
  readonly topicNames: (organizationId: string) => Promise<Iterable<string>>;
  readonly results: StoredResults;
}

interface Task {
  readonly organization: OrganizationReference;
  readonly record: QueryRecord;
  readonly statement: Statement;
  readonly signal: AbortSignal;
}

/** One run of a query: makes its tables complete, runs it, and stores what comes out. */
export class Execution {
  readonly #options: ExecutionOptions;
  readonly #releases: (() => void)[] = [];

  constructor(options: ExecutionOptions) {
    this.#options = options;
  }

  async run(task: Task): Promise<QueryEnd> {
    try {
      return await this.#run(task);
    } catch (error) {
      // The lake says in a sentence what it cannot do at the moment.
      if (error instanceof LakeUnavailableError) return failed(error.message);
      if (task.signal.aborted) return { state: 'CANCELLED' };
      throw error;
    } finally {
      for (const release of this.#releases) release();
    }
  }

  async #run(task: Task): Promise<QueryEnd> {
    const { engine, lake, results } = this.#options;
    const { organization, record, statement, signal } = task;
    const names = namesUsed(statement, organization.name);
    const tables = await this.#flushed(task, names);
    const chosen = chooseTables(names, tables, statement.listsTables);
    if ('ambiguous' in chosen) return failed(chosen.ambiguous);
    const hasState = !chosen.tables.has(stateTable.name);
    const usesState = names.some((name) => name.toLowerCase() === stateTable.name);
    const outcome = await engine.run(
      {
        organization,
        sql: record.sql,
        directory: lake.rootOf(organization),
        tables: [
          ...[...chosen.tables].map(([name, table]) => this.#jobTable(task, name, table)),
          ...hiddenNames(names, chosen.tables).map(hiddenTable),
        ],
        namesIngestedAt: statement.namesIngestedAt,
        writeState:
          hasState && (usesState || statement.listsTables)
            ? (path) => this.#writeState(task, usesState, path)
            : undefined,
      },
      signal,
    );
    if (outcome.kind === 'failed') return failed(withSuggestion(outcome, [...tables, stateTable]));
    try {
      return await this.#store(results, record, outcome);
    } finally {
      await outcome.discard();
    }
  }

  /** The tables of the organization, after everything acknowledged so far is in those that are named. */
  async #flushed(
    { organization, statement, signal }: Task,
    names: readonly string[],
  ): Promise<readonly TableDescription[]> {
    const { lake, topicNames } = this.#options;
    if (names.length === 0 && !statement.listsTables) return [];
    const known = new Set(await topicNames(organization.id));
    for (const { name } of await lake.tables(organization)) known.add(name);
    // A topic may have begun since on another node: then its exact name finds it.
    const wanted = statement.listsTables ? [...known] : names.flatMap((name) => meant(name, known));
    await lake.flush(organization, [...new Set([...wanted, ...names])], signal);
    return lake.tables(organization);
  }

  /** Where only the names of tables are asked for, nobody looks into this one. */
  async #writeState({ organization, signal }: Task, isRead: boolean, path: string): Promise<void> {
    if (isRead) await writeStateSnapshot(this.#options, organization.id, path, signal);
    else await writeFile(path, '');
  }

  #jobTable({ organization, signal }: Task, name: string, table: TableDescription): JobTable {
    return {
      name,
      columns: table.columns.map(({ name: column, type, sqlType }) => ({
        name: column,
        type: sqlType ?? type,
      })),
      scan: async (range) => {
        const scan = await this.#options.lake.scan(organization, table.name, signal, range);
        if (scan === undefined) throw new Error(`the table of ${table.name} is gone`);
        this.#releases.push(() => scan.release());
        return scan.sql;
      },
    };
  }

  async #store(results: StoredResults, record: QueryRecord, outcome: Success): Promise<QueryEnd> {
    const rowsBytes = await results.put(record.organizationId, record.id, outcome);
    return {
      state: 'SUCCEEDED',
      bytesScanned: outcome.bytesScanned,
      executionMilliseconds: Math.round(outcome.executionMilliseconds),
      columns: outcome.columns,
      rowsBytes,
    };
  }
}

function failed(error: string): QueryEnd {
  return { state: 'FAILED', error };
}

/**
 * Which table stands under which name. DuckDB does not tell names apart by case, topics do: a name means
 * the topic that is written exactly so, or else the only one that differs in case.
 */
function chooseTables(
  names: readonly string[],
  tables: readonly TableDescription[],
  all: boolean,
): { readonly tables: Map<string, TableDescription> } | { readonly ambiguous: string } {
  const byName = new Map(tables.map((table) => [table.name, table]));
  const chosen = new Map<string, TableDescription>();
  const folded = new Map<string, string>();
  for (const name of names) {
    const [topic, other] = meant(name, byName.keys());
    const table = topic === undefined ? undefined : byName.get(topic);
    if (topic === undefined || table === undefined) continue;
    if (other !== undefined) {
      return {
        ambiguous: `The table "${name}" may be "${topic}" or "${other}": write the one that is meant.`,
      };
    }
    const before = folded.get(name.toLowerCase());
    if (before !== undefined && before !== topic) {
      return {
        ambiguous: `One query cannot use both "${before}" and "${topic}", whose names differ only in case.`,
      };
    }
    folded.set(name.toLowerCase(), topic);
    if (before === undefined) chosen.set(topic, table);
  }
  if (!all) return { tables: chosen };
  for (const [name, table] of byName) {
    if (folded.has(name.toLowerCase())) continue;
    folded.set(name.toLowerCase(), name);
    chosen.set(name, table);
  }
  return { tables: chosen };
}

/**
 * The names in a statement that are no table's and that mean something to the engine: one of its own
 * tables, or a file. The statement may have them for parts of itself, or a topic without a table may be
 * called so; wherever neither is the case, nothing else may be found under them.
 */
function hiddenNames(names: readonly string[], tables: ReadonlyMap<string, TableDescription>): string[] {
  const taken = new Set([...tables.keys()].map((name) => name.toLowerCase()));
  const hidden = new Map<string, string>();
  for (const name of names) {
    const folded = name.toLowerCase();
    if (!taken.has(folded) && hasMeaningToEngine(name)) hidden.set(folded, name);
  }
  return [...hidden.values()];
}

/** Stands before whatever the engine has under a name, and says that there is no such table. */
function hiddenTable(name: string): JobTable {
  const message = `Table with name ${name} does not exist`.replaceAll("'", "''");
  return {
    name,
    columns: [{ name: 'nothing', type: 'integer' }],
    scan: async () => `SELECT error('${message}')::INTEGER AS nothing`,
  };
}

function withSuggestion(failure: Failure, tables: readonly TableDescription[]): string {
  const { message, missingTable } = failure;
  if (missingTable === undefined) return message;
  const names = tables.map(({ name }) => name);
  const similar = similarNames(missingTable, names);
  if (similar.length === 0) return message;
  return `${message}\nDid you mean ${similar.map((name) => `"${name}"`).join(' or ')}?`;
}
