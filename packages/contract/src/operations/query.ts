import Type from 'typebox';
import { bodyFor } from '../body-bytes.ts';
import type { Limits } from '../limits.ts';
import {
  Identifier,
  inOrganization,
  OrganizationName,
  oneOf,
  PageToken,
  pageSize,
  strict,
} from '../names.ts';
import { defineOperations } from '../operation.ts';
import type { Types } from '../types/index.ts';
import { organization, queryStatus } from './examples.ts';

const viewer = { kind: 'organization', role: 'VIEWER' } as const;
const inQuery = strict({ organizationName: OrganizationName, queryExecutionId: Identifier });
const execution = { ...organization, queryExecutionId: queryStatus.queryExecutionId } as const;

export function queryOperations(types: Types, limits: Limits) {
  return defineOperations({
    submitQuery: {
      method: 'POST',
      path: '/v1/organization/{organizationName}/query/submit',
      group: 'Query',
      summary: 'Submit a SQL query',
      description: 'It sees every message that was acknowledged before it.',
      access: viewer,
      parameters: { path: inOrganization },
      body: { schema: types.SubmitQueryRequest },
      responses: { 200: { description: 'Its id.', schema: types.SubmitQueryResponse } },
      problems: ['SQL_INVALID', 'OVERLOADED'],
      limits: { bodyBytes: bodyFor(limits.sqlBytes) },
      example: {
        path: organization,
        body: { sqlQuery: queryStatus.sqlQuery },
        response: { queryExecutionId: queryStatus.queryExecutionId },
      },
    },
    getQueryStatus: {
      method: 'GET',
      path: '/v1/organization/{organizationName}/query/{queryExecutionId}/status',
      group: 'Query',
      summary: 'Read the status of a query',
      access: viewer,
      parameters: { path: inQuery },
      responses: { 200: { description: 'The status.', schema: types.QueryExecutionStatus } },
      problems: ['QUERY_NOT_FOUND'],
      example: { path: execution, response: queryStatus },
    },
    getQueryResults: {
      method: 'GET',
      path: '/v1/organization/{organizationName}/query/{queryExecutionId}/results',
      group: 'Query',
      summary: 'Read a page of results',
      access: viewer,
      parameters: {
        path: inQuery,
        query: strict({
          nextToken: Type.Optional(PageToken),
          maxResults: Type.Optional(pageSize(Math.min(100, limits.resultsPage), limits.resultsPage)),
        }),
      },
      responses: { 200: { description: 'Columns and rows.', schema: types.QueryResultsResponse } },
      problems: ['QUERY_NOT_FOUND', 'QUERY_NOT_SUCCEEDED', 'TOKEN_INVALID'],
      example: {
        path: execution,
        response: {
          columns: [
            { name: 'page', type: 'varchar' },
            { name: 'views', type: 'bigint' },
          ],
          rows: [['/pricing', '1204']],
        },
      },
    },
    getQueryHistory: {
      method: 'GET',
      path: '/v1/organization/{organizationName}/query/history',
      group: 'Query',
      summary: 'List past queries',
      access: viewer,
      parameters: {
        path: inOrganization,
        query: strict({
          maxResults: Type.Optional(pageSize(Math.min(50, limits.historyPage), limits.historyPage)),
        }),
      },
      responses: { 200: { description: 'Newest first.', schema: types.QueryHistoryResponse } },
      example: { path: organization, response: { queries: [queryStatus] } },
    },
    getDatabaseSchema: {
      method: 'GET',
      path: '/v1/organization/{organizationName}/query/schema',
      group: 'Query',
      summary: 'List tables and columns',
      access: viewer,
      parameters: { path: inOrganization },
      responses: { 200: { description: 'The tables.', schema: types.DatabaseSchemaResponse } },
      example: {
        path: organization,
        response: {
          databaseName: 'acme',
          tables: [{ name: 'clicks', columns: [{ name: 'page', type: 'varchar' }] }],
        },
      },
    },
    cancelQuery: {
      method: 'POST',
      path: '/v1/organization/{organizationName}/query/{queryExecutionId}/cancel',
      group: 'Query',
      summary: 'Cancel a query',
      access: viewer,
      parameters: { path: inQuery },
      responses: { 200: { description: 'The status.', schema: types.QueryExecutionStatus } },
      problems: ['QUERY_NOT_FOUND'],
      example: { path: execution, response: { ...queryStatus, state: 'CANCELLED' } },
    },
    exportQuery: {
      method: 'GET',
      path: '/v1/organization/{organizationName}/query/{queryExecutionId}/export',
      group: 'Query',
      summary: 'Download the whole result',
      access: viewer,
      parameters: {
        path: inQuery,
        query: strict({ format: oneOf(['csv', 'json', 'parquet'], 'The file format.') }),
      },
      responses: {
        200: {
          description: 'The file.',
          mediaTypes: ['text/csv', 'application/json', 'application/vnd.apache.parquet'],
        },
      },
      problems: ['QUERY_NOT_FOUND', 'QUERY_NOT_SUCCEEDED'],
      example: { path: execution, query: { format: 'csv' } },
    },
  });
}
