import type { Limits } from '@millrace/contract';
import { timestamp } from '../../platform/clock.ts';
import type { PageTokens } from '../../platform/page-token.ts';
import { Problem, problem } from '../../platform/problem.ts';
import type { Queries } from '../../query/queries.ts';
import type { QueryRecord } from '../../query/query-store.ts';
import { answer, type HandlersOf, stream } from '../handlers.ts';

/** The rows of a page, and the queries of a history, when the request does not say. */
const usualResults = 100;
const usualHistory = 50;

const mediaTypes = {
  csv: 'text/csv; charset=utf-8',
  json: 'application/json; charset=utf-8',
  parquet: 'application/vnd.apache.parquet',
} as const;

export function queryHandlers(
  queries: Queries,
  pageTokens: PageTokens,
  limits: Limits,
): HandlersOf<
  | 'submitQuery'
  | 'getQueryStatus'
  | 'getQueryResults'
  | 'getQueryHistory'
  | 'getDatabaseSchema'
  | 'cancelQuery'
  | 'exportQuery'
> {
  return {
    submitQuery: async ({ body, organization, caller }) => {
      const { sqlQuery } = body;
      if (Buffer.byteLength(sqlQuery) > limits.sqlBytes) {
        return problem('BODY_TOO_LARGE', `A query may have at most ${limits.sqlBytes} bytes.`);
      }
      const username = caller.kind === 'key' ? caller.key.ownerUsername : caller.username;
      const submitted = await queries.submit(organization, sqlQuery, username);
      return submitted instanceof Problem ? submitted : answer({ queryExecutionId: submitted.id });
    },
    getQueryStatus: async ({ path, organization }) =>
      statusAnswer(await queries.status(organization.id, path.queryExecutionId)),
    getQueryResults: async ({ path, query, organization }) => {
      const { nextToken, maxResults: limit = Math.min(usualResults, limits.resultsPage) } = query;
      const id = path.queryExecutionId;
      const scope = [organization.id, 'getQueryResults', id];
      const position = nextToken === undefined ? '0' : pageTokens.open(scope, nextToken);
      if (position === undefined) return problem('TOKEN_INVALID');
      const page = await queries.results(organization.id, id, { from: Number(position), limit });
      if (page instanceof Problem) return page;
      const columns = page.columns.map(({ name, type }) => ({ name, type }));
      const { rows, next } = page;
      if (next === undefined) return answer({ columns, rows });
      return answer({ columns, rows, nextToken: pageTokens.seal(scope, String(next)) });
    },
    getQueryHistory: async ({ query, organization }) => {
      const { maxResults = Math.min(usualHistory, limits.historyPage) } = query;
      const records = await queries.history(organization.id, maxResults);
      return answer({ queries: records.map(statusOf) });
    },
    getDatabaseSchema: async ({ organization }) => {
      const tables = await queries.tables(organization);
      return answer({
        databaseName: organization.name,
        tables: tables.map(({ name, columns }) => ({
          name,
          columns: columns.map((column) => ({ name: column.name, type: column.type })),
        })),
      });
    },
    cancelQuery: async ({ path, organization }) =>
      statusAnswer(await queries.cancel(organization.id, path.queryExecutionId)),
    exportQuery: async ({ path, query, organization }) => {
      const id = path.queryExecutionId;
      const chunks = await queries.export(organization.id, id, query.format);
      if (chunks instanceof Problem) return chunks;
      return stream(mediaTypes[query.format], chunks, `query-${id}.${query.format}`);
    },
  };
}

function statusAnswer(outcome: QueryRecord | Problem) {
  return outcome instanceof Problem ? outcome : answer(statusOf(outcome));
}

function statusOf(record: QueryRecord) {
  const { completedAt, bytesScanned, executionMilliseconds, error, username } = record;
  return {
    queryExecutionId: record.id,
    sqlQuery: record.sql,
    state: record.state,
    submittedAt: timestamp(record.submittedAt),
    ...(completedAt === undefined ? {} : { completedAt: timestamp(completedAt) }),
    ...(bytesScanned === undefined ? {} : { bytesScanned }),
    ...(executionMilliseconds === undefined ? {} : { executionTimeMs: executionMilliseconds }),
    ...(error === undefined ? {} : { errorMessage: error }),
    ...(username === undefined ? {} : { username }),
  };
}
