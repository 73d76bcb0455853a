import type { Database } from '../database/database.ts';
import type { ObjectStore } from '../objects/objects.ts';
import type { Clock } from '../platform/clock.ts';
import type { Log } from '../platform/log.ts';
import { type Problem, problem } from '../platform/problem.ts';
import { type Random, randomId } from '../platform/random.ts';
import type { QueryEngine, ResultColumn, Statement } from './engine.ts';
import { Execution } from './execution.ts';
import { csvOf, jsonOf } from './exports.ts';
import { FairQueue } from './fair-queue.ts';
import { placed } from './place.ts';
import {
  deleteQuery,
  endQuery,
  failAbandoned,
  failUnfinished,
  findQuery,
  findResult,
  insertQuery,
  listOldQueries,
  listQueries,
  markRunning,
  prolongQueries,
  type QueryEnd,
  type QueryRecord,
  type ResultRecord,
} from './query-store.ts';
import { type Row, StoredResults } from './stored-results.ts';
import {
  type LakeTables,
  type OrganizationReference,
  refusedTable,
  stateTable,
  type TableDescription,
} from './tables.ts';

export interface QueriesOptions {
  readonly database: Database;
  readonly objects: ObjectStore;
  readonly engine: QueryEngine;
  readonly lake: LakeTables;
  /**
   * The topics that an organization has defined, whether or not anything was published to them, and those
   * that were published to, whether or not they are defined.
   */
  readonly topicNames: (organizationId: string) => Promise<Iterable<string>>;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly nodeId: string;
  /** How many queries run at once, of one organization and of all. */
  readonly concurrency: { readonly ofOne: number; readonly ofAll: number };
}

export type ExportFormat = 'csv' | 'json' | 'parquet';

interface LiveQuery {
  readonly record: QueryRecord;
  readonly abort: AbortController;
  /** Resolves when its end is in the database. */
  readonly ended: Promise<void>;
  withdraw(): boolean;
  isRunning: boolean;
}

const waitingOfAll = 1000;
const waitingOfOne = 100;
const keptMilliseconds = 7 * 24 * 3_600_000;
const aliveMilliseconds = 30_000;
const cancelMilliseconds = 2000;
const sweptAtOnce = 200;
const cancelChannel = 'query.cancel';

/**
 * The SQL queries of organizations, from submission to the last page of results.
 *
 *     QUEUED ──> RUNNING ──> SUCCEEDED | FAILED | CANCELLED
 *        └─────────────────> FAILED | CANCELLED
 *
 * The node to which a query is submitted runs it; the row in the database says so, and until when it is
 * believed to be alive. What a node was at when it ended is failed by itself at its next start, or by any
 * other node a while later. An end is written once: whoever comes second changes nothing.
 */
export class Queries {
  readonly #options: QueriesOptions;
  readonly #queue: FairQueue;
  readonly #results: StoredResults;
  readonly #live = new Map<string, LiveQuery>();
  readonly #endListening: () => void;

  constructor(options: QueriesOptions) {
    this.#options = options;
    this.#queue = new FairQueue({
      running: options.concurrency.ofAll,
      runningOfOne: options.concurrency.ofOne,
      waiting: waitingOfAll,
      waitingOfOne,
    });
    this.#results = new StoredResults(options.objects);
    this.#endListening = options.database.listen(cancelChannel, (id) => this.#cancelHere(id));
  }

  /** Fails what this node was at when it ended. */
  async start(): Promise<void> {
    const { database, nodeId, clock } = this.#options;
    const reason = 'The server was restarted while the query was queued or running.';
    await failUnfinished(database.query, nodeId, reason, clock.now());
  }

  async submit(
    organization: OrganizationReference,
    sql: string,
    username: string | undefined,
  ): Promise<{ id: string } | Problem> {
    const { engine, database, clock, random, nodeId } = this.#options;
    const statement = await engine.inspect(sql);
    if (statement.kind === 'refused') return problem('SQL_INVALID', statement.reason);
    const refused = await this.#refusal(organization, statement);
    if (refused !== undefined) {
      return problem('SQL_INVALID', placed(sql, refused.reason, refused.position));
    }
    const record: QueryRecord = {
      organizationId: organization.id,
      id: randomId(random),
      sql,
      state: 'QUEUED',
      username,
      submittedAt: clock.now(),
      completedAt: undefined,
      bytesScanned: undefined,
      executionMilliseconds: undefined,
      error: undefined,
    };
    await insertQuery(database, clock, { ...record, nodeId, aliveMilliseconds });
    if (this.#enqueue(organization, record, statement)) return { id: record.id };
    await deleteQuery(database.query, organization.id, record.id);
    return problem('OVERLOADED', 'Too many queries are waiting. Try again after a while.', {
      retryAfterSeconds: 5,
    });
  }

  async status(organizationId: string, id: string): Promise<QueryRecord | Problem> {
    const record = await this.#find(organizationId, id);
    return record ?? problem('QUERY_NOT_FOUND');
  }

  /** The newest first. */
  async history(organizationId: string, limit: number): Promise<QueryRecord[]> {
    const records = await listQueries(this.#options.database.query, organizationId, limit);
    return records.map((record) => this.#asOfNow(record));
  }

  /** A page of rows from a position on, which is one that a page before gave. */
  async results(
    organizationId: string,
    id: string,
    { from, limit }: { from: number; limit: number },
  ): Promise<{ columns: readonly ResultColumn[]; rows: Row[]; next: number | undefined } | Problem> {
    const found = await this.#finished(organizationId, id);
    if (!('columns' in found)) return found;
    const size = found.rowsBytes;
    const page = await this.#results.page(organizationId, id, from, { size, limit });
    return { columns: found.columns, ...page };
  }

  /** The whole result, made while it is read. */
  async export(
    organizationId: string,
    id: string,
    format: ExportFormat,
  ): Promise<AsyncIterable<string | Uint8Array> | Problem> {
    const found = await this.#finished(organizationId, id);
    if (!('columns' in found)) return found;
    if (format === 'parquet') return this.#results.parquet(organizationId, id);
    const rows = this.#results.rows(organizationId, id);
    return format === 'csv' ? csvOf(found.columns, rows) : jsonOf(found.columns, rows);
  }

  /** The tables that a query can use. */
  async tables(organization: OrganizationReference): Promise<TableDescription[]> {
    const tables = await this.#options.lake.tables(organization);
    const others = tables.filter(({ name }) => name !== stateTable.name);
    return [...others, stateTable];
  }

  /** Stops a query that has not ended, on whatever node it is, and answers how it stands then. */
  async cancel(organizationId: string, id: string): Promise<QueryRecord | Problem> {
    const record = await this.#find(organizationId, id);
    if (record === undefined) return problem('QUERY_NOT_FOUND');
    if (record.state !== 'QUEUED' && record.state !== 'RUNNING') return record;
    const live = this.#live.get(id);
    if (live === undefined) await this.#options.database.announce(cancelChannel, id);
    else this.#cancelHere(id);
    await this.#untilEnded(organizationId, id, live);
    return (await this.#find(organizationId, id)) ?? problem('QUERY_NOT_FOUND');
  }

  /** Tells other nodes that the queries of this one are alive, and fails those of nodes that are not. */
  async beat(): Promise<void> {
    const { database, clock, nodeId } = this.#options;
    if (this.#live.size > 0) await prolongQueries(database, clock, nodeId, aliveMilliseconds);
    await failAbandoned(database, clock, 'The node that ran the query is gone.');
  }

  /** Deletes queries and results that are older than they are kept. */
  async sweep(): Promise<void> {
    const { database, clock } = this.#options;
    for (;;) {
      const old = await listOldQueries(database.query, clock.now() - keptMilliseconds, sweptAtOnce);
      for (const { organizationId, id } of old) {
        await this.#results.delete(organizationId, id);
        await deleteQuery(database.query, organizationId, id);
      }
      if (old.length < sweptAtOnce) return;
    }
  }

  /** Stops what is under way: it fails with a reason, as at a restart. */
  async close(): Promise<void> {
    this.#endListening();
    for (const live of this.#live.values()) live.abort.abort('shutdown');
    await this.#queue.close();
    await this.start();
    await this.#options.engine.close();
  }

  #enqueue(organization: OrganizationReference, record: QueryRecord, statement: Statement): boolean {
    const abort = new AbortController();
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    const start = async () => {
      live.isRunning = true;
      try {
        await this.#run(organization, record, statement, abort.signal);
      } finally {
        this.#live.delete(record.id);
        end();
      }
    };
    const live: LiveQuery = {
      record,
      abort,
      ended,
      isRunning: false,
      withdraw: () => {
        if (place?.withdraw() !== true) return false;
        this.#live.delete(record.id);
        this.#end(record, { state: 'CANCELLED' }).finally(end);
        return true;
      },
    };
    this.#live.set(record.id, live);
    const place = this.#queue.add(organization.id, start);
    if (place === undefined) this.#live.delete(record.id);
    return place !== undefined;
  }

  async #run(
    organization: OrganizationReference,
    record: QueryRecord,
    statement: Statement,
    signal: AbortSignal,
  ): Promise<void> {
    const { database, log } = this.#options;
    // Nobody waits for this one: on this node the state is known anyway.
    const marked = markRunning(database.query, organization.id, record.id);
    let end: QueryEnd;
    try {
      const execution = new Execution({ ...this.#options, results: this.#results });
      end = await execution.run({ organization, record, statement, signal });
    } catch (error) {
      log.error({ event: 'query.failed', error, queryId: record.id }, 'a query could not be run');
      end = { state: 'FAILED', error: 'The service could not run the query. Try again.' };
    }
    await marked.catch(() => {});
    if (signal.aborted && signal.reason === 'shutdown') return;
    await this.#end(record, signal.aborted ? { state: 'CANCELLED' } : end);
  }

  async #end(record: QueryRecord, end: QueryEnd): Promise<void> {
    const { database, clock, log } = this.#options;
    const { organizationId, id } = record;
    try {
      const isFirst = await endQuery(database.query, organizationId, id, end, clock.now());
      if (!isFirst || end.state !== 'SUCCEEDED') await this.#results.delete(organizationId, id);
    } catch (error) {
      // Another node, or this one at its next start, fails the query when it is no longer prolonged.
      log.error({ event: 'query.end-lost', error, queryId: id }, 'the end of a query could not be written');
    }
  }

  async #refusal(organization: OrganizationReference, statement: Statement) {
    if (statement.tables.length === 0) return undefined;
    const { lake, topicNames } = this.#options;
    const check = (known: readonly string[]) => refusedTable(statement, organization.name, known);
    // Most statements need no look at what there is.
    if (check([]) === undefined) return undefined;
    const tables = await lake.tables(organization);
    return check([...(await topicNames(organization.id)), ...tables.map(({ name }) => name)]);
  }

  async #finished(organizationId: string, id: string): Promise<ResultRecord | Problem> {
    const found = await findResult(this.#options.database.query, organizationId, id);
    if (found === undefined) return problem('QUERY_NOT_FOUND');
    return found.state === 'SUCCEEDED' ? found : problem('QUERY_NOT_SUCCEEDED');
  }

  async #find(organizationId: string, id: string): Promise<QueryRecord | undefined> {
    const live = this.#live.get(id);
    if (live !== undefined && live.record.organizationId === organizationId)
      return this.#asOfNow(live.record);
    return findQuery(this.#options.database.query, organizationId, id);
  }

  /** What the database says of a query at work may be a moment old. */
  #asOfNow(record: QueryRecord): QueryRecord {
    const isRunning = this.#live.get(record.id)?.isRunning === true;
    return isRunning && record.state === 'QUEUED' ? { ...record, state: 'RUNNING' } : record;
  }

  #cancelHere(id: string): void {
    const live = this.#live.get(id);
    if (live !== undefined && !live.withdraw()) live.abort.abort('cancelled');
  }

  async #untilEnded(organizationId: string, id: string, live: LiveQuery | undefined): Promise<void> {
    const limit = AbortSignal.timeout(cancelMilliseconds);
    if (live !== undefined) {
      const late = new Promise<void>((resolve) => limit.addEventListener('abort', () => resolve()));
      await Promise.race([live.ended, late]);
      return;
    }
    // It is on another node, and the database tells.
    while (!limit.aborted) {
      const record = await findQuery(this.#options.database.query, organizationId, id);
      if (record === undefined || (record.state !== 'QUEUED' && record.state !== 'RUNNING')) return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}
