import Type from 'typebox';
import type { Limits } from '../limits.ts';
import { OrganizationName, oneOf, strict, Timestamp, withoutNul } from '../names.ts';

export function submitQueryRequest(limits: Limits) {
  return strict({
    sqlQuery: Type.String({
      minLength: 1,
      maxLength: limits.sqlBytes,
      ...withoutNul,
      description: 'Exactly one read-only SQL statement.',
    }),
  });
}

export const SubmitQueryResponse = strict({ queryExecutionId: Type.String() });

export const queryStates = ['QUEUED', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELLED'] as const;

export const QueryExecutionStatus = strict({
  queryExecutionId: Type.String(),
  sqlQuery: Type.String(),
  state: oneOf(queryStates),
  submittedAt: Timestamp,
  completedAt: Type.Optional(Timestamp),
  bytesScanned: Type.Optional(Type.Integer()),
  executionTimeMs: Type.Optional(Type.Integer()),
  errorMessage: Type.Optional(Type.String()),
  username: Type.Optional(Type.String()),
});

const Column = strict({ name: Type.String(), type: Type.String() });

export const QueryResultsResponse = strict({
  columns: Type.Array(Column),
  rows: Type.Array(Type.Array(Type.Union([Type.String(), Type.Null()]))),
  nextToken: Type.Optional(Type.String()),
});

export const QueryHistoryResponse = strict({ queries: Type.Array(QueryExecutionStatus) });

export const DatabaseSchemaResponse = strict({
  databaseName: OrganizationName,
  tables: Type.Array(strict({ name: Type.String(), columns: Type.Array(Column) })),
});
