import type { NamedType } from '@millrace/contract';
import { MillraceError } from './millrace-error.ts';
import { type OrganizationOptions, organizationOf, type Scope } from './scope.ts';
import { pause } from './transport.ts';

type Status = NamedType<'QueryExecutionStatus'>;
type Column = NamedType<'QueryResultsResponse'>['columns'][number];

/** The rows of a query that has succeeded. */
export interface QueryRows extends AsyncIterable<Readonly<Record<string, string | null>>> {
  readonly status: Status;
  readonly columns: readonly Column[];
  /** The rows as lists, in the order of the columns, for columns that have the same name. */
  lists(): AsyncGenerator<readonly (string | null)[], void>;
}

const firstPollMilliseconds = 10;
const longestPollMilliseconds = 1_000;

/** SQL over everything that was published to topics with batch. */
export class Queries {
  readonly #scope: Scope;

  constructor(scope: Scope) {
    this.#scope = scope;
  }

  /**
   * Runs a query: submits it, waits for it, and gives its rows. Ending the wait by the signal cancels it.
   *
   * @example
   * ```ts
   * const rows = await millrace.queries.run('SELECT page, count(*) AS views FROM clicks GROUP BY page');
   * for await (const row of rows) console.log(row.page, row.views);
   * ```
   */
  async run(
    sqlQuery: string,
    options: OrganizationOptions & { readonly onStatus?: (status: Status) => void } = {},
  ): Promise<QueryRows> {
    const id = await this.submit(sqlQuery, options);
    try {
      const status = await this.wait(id, options);
      if (status.state !== 'SUCCEEDED') {
        const detail = status.errorMessage ?? `The query was ${status.state.toLowerCase()}.`;
        throw new MillraceError({ code: `QUERY_${status.state}`, status: 200, detail });
      }
      return await this.rows(status, options);
    } catch (error) {
      if (options.signal?.aborted === true) {
        await this.cancel(id, { organization: options.organization }).catch(() => {});
      }
      throw error;
    }
  }

  /**
   * Submits a query and answers its id.
   *
   * @example
   * ```ts
   * const queryExecutionId = await millrace.queries.submit('SELECT 1');
   * ```
   */
  async submit(sqlQuery: string, options: OrganizationOptions = {}): Promise<string> {
    const answer = await this.#scope.transport.call('submitQuery', {
      path: { organizationName: organizationOf(this.#scope, options) },
      body: { sqlQuery },
      signal: options.signal,
    });
    return answer.queryExecutionId;
  }

  /**
   * The status of a query.
   *
   * @example
   * ```ts
   * const { state } = await millrace.queries.status('q4Jm2nXv5KpLw3RtYb7Zc1');
   * ```
   */
  status(queryExecutionId: string, options: OrganizationOptions = {}): Promise<Status> {
    return this.#scope.transport.call('getQueryStatus', {
      path: this.#path(queryExecutionId, options),
      signal: options.signal,
    });
  }

  /**
   * Waits until a query has succeeded, failed or was cancelled.
   *
   * @example
   * ```ts
   * const status = await millrace.queries.wait('q4Jm2nXv5KpLw3RtYb7Zc1', { signal: AbortSignal.timeout(60_000) });
   * ```
   */
  async wait(
    queryExecutionId: string,
    options: OrganizationOptions & { readonly onStatus?: (status: Status) => void } = {},
  ): Promise<Status> {
    for (let delay = firstPollMilliseconds; ; delay = Math.min(delay * 1.5, longestPollMilliseconds)) {
      const status = await this.status(queryExecutionId, options);
      options.onStatus?.(status);
      if (status.state !== 'QUEUED' && status.state !== 'RUNNING') return status;
      await pause(delay, options.signal);
    }
  }

  /**
   * One page of the results of a query that has succeeded.
   *
   * @example
   * ```ts
   * const { columns, rows, nextToken } = await millrace.queries.results('q4Jm2nXv5KpLw3RtYb7Zc1', { maxResults: 1000 });
   * ```
   */
  results(
    queryExecutionId: string,
    options: OrganizationOptions & {
      readonly maxResults?: number | undefined;
      readonly nextToken?: string | undefined;
    } = {},
  ): Promise<NamedType<'QueryResultsResponse'>> {
    const { maxResults, nextToken, signal } = options;
    return this.#scope.transport.call('getQueryResults', {
      path: this.#path(queryExecutionId, options),
      query: {
        ...(maxResults === undefined ? {} : { maxResults }),
        ...(nextToken === undefined ? {} : { nextToken }),
      },
      signal,
    });
  }

  /**
   * All rows of a query that has succeeded, page after page.
   *
   * @example
   * ```ts
   * const status = await millrace.queries.wait('q4Jm2nXv5KpLw3RtYb7Zc1');
   * for await (const row of await millrace.queries.rows(status)) console.log(row);
   * ```
   */
  async rows(status: Status, options: OrganizationOptions = {}): Promise<QueryRows> {
    const read = (nextToken?: string) =>
      this.results(status.queryExecutionId, { ...options, maxResults: 1000, nextToken });
    const first = await read();
    async function* lists(): AsyncGenerator<readonly (string | null)[], void> {
      for (let page = first; ; page = await read(page.nextToken)) {
        yield* page.rows;
        if (page.nextToken === undefined) return;
      }
    }
    const names = first.columns.map((column) => column.name);
    return {
      status,
      columns: first.columns,
      lists,
      async *[Symbol.asyncIterator]() {
        for await (const row of lists())
          yield Object.fromEntries(names.map((name, index) => [name, row[index] ?? null]));
      },
    };
  }

  /**
   * The latest queries of the organization, newest first.
   *
   * @example
   * ```ts
   * for (const query of await millrace.queries.history({ maxResults: 10 })) console.log(query.state, query.sqlQuery);
   * ```
   */
  async history(options: OrganizationOptions & { readonly maxResults?: number } = {}): Promise<Status[]> {
    const { maxResults, signal } = options;
    const answer = await this.#scope.transport.call('getQueryHistory', {
      path: { organizationName: organizationOf(this.#scope, options) },
      query: maxResults === undefined ? {} : { maxResults },
      signal,
    });
    return answer.queries;
  }

  /**
   * Stops a query within a second.
   *
   * @example
   * ```ts
   * await millrace.queries.cancel('q4Jm2nXv5KpLw3RtYb7Zc1');
   * ```
   */
  cancel(queryExecutionId: string, options: OrganizationOptions = {}): Promise<Status> {
    return this.#scope.transport.call('cancelQuery', {
      path: this.#path(queryExecutionId, options),
      signal: options.signal,
    });
  }

  /**
   * The whole result as a file, streamed.
   *
   * @example
   * ```ts
   * const stream = await millrace.queries.export('q4Jm2nXv5KpLw3RtYb7Zc1', 'csv');
   * for await (const chunk of stream) process.stdout.write(chunk);
   * ```
   */
  async export(
    queryExecutionId: string,
    format: 'csv' | 'json' | 'parquet',
    options: OrganizationOptions = {},
  ): Promise<ReadableStream<Uint8Array<ArrayBuffer>>> {
    const response = await this.#scope.transport.open('exportQuery', {
      path: this.#path(queryExecutionId, options),
      query: { format },
      signal: options.signal,
    });
    return response.body ?? new ReadableStream({ start: (controller) => controller.close() });
  }

  /**
   * The tables of the organization with their columns.
   *
   * @example
   * ```ts
   * for (const table of (await millrace.queries.schema()).tables) console.log(table.name);
   * ```
   */
  schema(options: OrganizationOptions = {}): Promise<NamedType<'DatabaseSchemaResponse'>> {
    return this.#scope.transport.call('getDatabaseSchema', {
      path: { organizationName: organizationOf(this.#scope, options) },
      signal: options.signal,
    });
  }

  #path(queryExecutionId: string, options: OrganizationOptions) {
    return { organizationName: organizationOf(this.#scope, options), queryExecutionId };
  }
}
