import Type from 'typebox';
import type { Limits } from '../limits.ts';
import { OrganizationName, oneOf, strict, Timestamp, TopicName, text, withoutNul } from '../names.ts';

const FieldName = Type.String({ minLength: 1, maxLength: 256, ...withoutNul });

export const StoreKey = strict({
  tableType: oneOf(['PRIMARY', 'GSI', 'LSI']),
  indexNumber: Type.Optional(Type.Integer({ minimum: 0, maximum: 10 })),
  pkParts: Type.Array(FieldName, {
    minItems: 1,
    maxItems: 16,
    description: 'Message fields of the partition key.',
  }),
  skParts: Type.Optional(
    Type.Array(FieldName, { maxItems: 16, description: 'Message fields of the sort key.' }),
  ),
  rangePrefix: text(256, 'The first part of the sort key.'),
});

export const Topic = strict({
  batch: Type.Optional(
    strict(
      { retentionInDays: Type.Optional(Type.Integer({ minimum: 1, maximum: 3660, default: 90 })) },
      'Messages land in Parquet files that can be queried.',
    ),
  ),
  streams: Type.Optional(
    Type.Array(strict({ name: TopicName }), { maxItems: 100, description: 'Streams that tasks may read.' }),
  ),
  store: Type.Optional(
    strict(
      {
        keys: Type.Array(StoreKey, { minItems: 1, maxItems: 21, description: 'Exactly one is PRIMARY.' }),
        ttlInSec: Type.Integer({ minimum: 1, maximum: 315_360_000 }),
        blacklist: Type.Optional(Type.Array(FieldName, { maxItems: 1000 })),
        whitelist: Type.Optional(Type.Array(FieldName, { maxItems: 1000 })),
      },
      'Messages are kept as state entries.',
    ),
  ),
});

export const Topics = strict({
  organizationName: OrganizationName,
  allowUndefinedTopics: Type.Boolean(),
  undefinedTopic: Type.Optional(Topic),
  topics: Type.Record(Type.String(), Topic),
  version: Type.Integer({ minimum: 0 }),
});

export const UpdateDefaultTopicRequest = strict({
  allowUndefined: Type.Boolean(),
  topic: Type.Optional(Topic),
});

export const TopicSchema = strict({
  schema: Type.String({ description: 'A JSON Schema, as a string.' }),
  format: oneOf(['JSON']),
});

export function updateTopicSchemaRequest(limits: Limits) {
  return strict({
    schema: Type.String({
      minLength: 1,
      maxLength: limits.schemaBytes,
      description: 'A JSON Schema, as a string.',
    }),
    format: oneOf(['JSON']),
  });
}

export const TopicFilesResponse = strict({
  files: Type.Array(strict({ key: Type.String(), size: Type.Integer(), lastModified: Timestamp })),
  nextToken: Type.Optional(Type.String()),
});

export const FileDownloadUrlResponse = strict({ url: Type.String(), expiresAt: Timestamp });
