/** Values that the examples of several operations share, so that the documentation tells one story. */
export const organization = { organizationName: 'acme' } as const;
export const clicks = { organizationName: 'acme', topicName: 'clicks' } as const;
export const enrich = { organizationName: 'acme', taskId: 'enrich' } as const;

export const signInResult = {
  result: {
    accessToken: 'eyJhbGciOiJFZERTQSIsInR5cCI6ImF0K2p3dCJ9...',
    refreshToken: 'Vt0bq1l7nE1mR0bJm8c2W6sT3yKx5uPz4dFgHj9aLq8',
    idToken: 'eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9...',
  },
} as const;

export const taskStatus = {
  taskId: 'enrich',
  status: 'RUNNING',
  version: '3',
  lastUpdateStatus: 'SUCCESSFUL',
  inputQueueNames: ['clicks'],
  outputQueueNames: ['enriched'],
} as const;

export const topics = {
  organizationName: 'acme',
  allowUndefinedTopics: true,
  undefinedTopic: { batch: {} },
  topics: { clicks: { batch: { retentionInDays: 30 }, streams: [{ name: 'clicks' }] } },
  version: 4,
} as const;

export const stateEntry = {
  keyParts: ['user', '42'],
  mergedKey: 'user:42',
  attributes: { visits: 7 },
  ttlInEpochSec: 1794700800,
  version: 3,
} as const;

export const queryStatus = {
  queryExecutionId: 'q5Jm2nXv8KpLw3RtYb7Zc1',
  sqlQuery: 'SELECT page, count(*) AS views FROM clicks GROUP BY page',
  state: 'SUCCEEDED',
  submittedAt: '2026-11-15T09:30:00.000Z',
  completedAt: '2026-11-15T09:30:00.240Z',
  bytesScanned: 48213,
  executionTimeMs: 212,
  username: 'ada',
} as const;
