import Type from 'typebox';
import { bodyFor, bodyOf } from '../body-bytes.ts';
import type { Limits } from '../limits.ts';
import { inOrganization, inTopic, PageToken, pageSize, strict, text, withoutNul } from '../names.ts';
import { defineOperations } from '../operation.ts';
import type { Types } from '../types/index.ts';
import { clicks, organization, topics } from './examples.ts';

const viewer = { kind: 'organization', role: 'VIEWER' } as const;
const member = { kind: 'organization', role: 'MEMBER' } as const;

const expectingVersion = strict({
  expectedVersion: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'The version the topics must have; otherwise nothing changes and the answer is 409.',
    }),
  ),
});

const schemaDocument = {
  schema: '{"type":"object","properties":{"page":{"type":"string"}}}',
  format: 'JSON',
} as const;

const fileKey =
  'organization=acme/topic=clicks/year=2026/month=11/day=15/hour=09/p2Kx9LmQ7vRt4WbYc8Zn3J.parquet';

export function topicOperations(types: Types, limits: Limits) {
  return defineOperations({
    getTopics: {
      method: 'GET',
      path: '/v1/organization/{organizationName}/topics',
      group: 'Topics',
      summary: 'Read the topic definitions',
      access: viewer,
      parameters: { path: inOrganization },
      responses: { 200: { description: 'All topics.', schema: types.Topics } },
      example: { path: organization, response: topics },
    },
    updateDefaultTopic: {
      method: 'PATCH',
      path: '/v1/organization/{organizationName}/topic/default',
      group: 'Topics',
      summary: 'Say what happens to topics that are not defined',
      access: member,
      parameters: { path: inOrganization, query: expectingVersion },
      body: { schema: types.UpdateDefaultTopicRequest },
      responses: { 200: { description: 'All topics.', schema: types.Topics } },
      problems: ['VERSION_MISMATCH', 'TASK_CYCLE'],
      limits: { bodyBytes: bodyOf(types.UpdateDefaultTopicRequest) },
      example: { path: organization, body: { allowUndefined: true, topic: { batch: {} } }, response: topics },
    },
    updateTopic: {
      method: 'PATCH',
      path: '/v1/organization/{organizationName}/topic/{topicName}',
      group: 'Topics',
      summary: 'Define or replace a topic',
      access: member,
      parameters: { path: inTopic, query: expectingVersion },
      body: { schema: types.Topic },
      responses: { 200: { description: 'All topics.', schema: types.Topics } },
      problems: ['VERSION_MISMATCH', 'TASK_CYCLE'],
      limits: { bodyBytes: bodyOf(types.Topic) },
      example: {
        path: clicks,
        query: { expectedVersion: 3 },
        body: { batch: { retentionInDays: 30 }, streams: [{ name: 'clicks' }] },
        response: topics,
      },
    },
    deleteTopic: {
      method: 'DELETE',
      path: '/v1/organization/{organizationName}/topic/{topicName}',
      group: 'Topics',
      summary: 'Delete a topic definition',
      access: member,
      parameters: { path: inTopic, query: expectingVersion },
      responses: { 200: { description: 'All topics.', schema: types.Topics } },
      problems: ['TOPIC_NOT_FOUND', 'VERSION_MISMATCH', 'TASK_CYCLE'],
      example: { path: clicks, response: { ...topics, topics: {}, version: 5 } },
    },
    getTopicSchema: {
      method: 'GET',
      path: '/v1/organization/{organizationName}/topic/{topicName}/schema',
      group: 'Topics',
      summary: 'Read the schema of a topic',
      access: viewer,
      parameters: { path: inTopic },
      responses: { 200: { description: 'The schema.', schema: types.TopicSchema } },
      problems: ['SCHEMA_NOT_FOUND'],
      example: { path: clicks, response: schemaDocument },
    },
    updateTopicSchema: {
      method: 'PUT',
      path: '/v1/organization/{organizationName}/topic/{topicName}/schema',
      group: 'Topics',
      summary: 'Set the schema of a topic',
      access: member,
      parameters: { path: inTopic },
      body: { schema: types.UpdateTopicSchemaRequest },
      responses: { 200: { description: 'It was the same already.' }, 201: { description: 'Changed.' } },
      problems: ['SCHEMA_INVALID', 'TOPIC_NOT_FOUND'],
      limits: { bodyBytes: bodyFor(limits.schemaBytes) },
      example: { path: clicks, body: schemaDocument },
    },
    recalculateTopicSchema: {
      method: 'POST',
      path: '/v1/organization/{organizationName}/topic/{topicName}/schema',
      group: 'Topics',
      summary: 'Infer the schema from what was ingested',
      description: "Updates the catalog's table as well.",
      access: member,
      parameters: { path: inTopic },
      responses: { 200: { description: 'The new schema.', schema: types.TopicSchema } },
      problems: ['BATCH_REQUIRED', 'TOPIC_NOT_FOUND'],
      example: { path: clicks, response: schemaDocument },
    },
    listTopicFiles: {
      method: 'GET',
      path: '/v1/organization/{organizationName}/topic/{topicName}/files',
      group: 'Topics',
      summary: 'List the files of a topic with batch',
      access: viewer,
      parameters: {
        path: inTopic,
        query: strict({
          prefix: Type.Optional(
            text(1024, 'The start of the full key, or of the part after the topic folder.'),
          ),
          maxResults: Type.Optional(pageSize(Math.min(100, limits.filesPage), limits.filesPage)),
          nextToken: Type.Optional(PageToken),
        }),
      },
      responses: { 200: { description: 'A page of files.', schema: types.TopicFilesResponse } },
      problems: ['BATCH_REQUIRED', 'TOKEN_INVALID', 'TOPIC_NOT_FOUND'],
      example: {
        path: clicks,
        query: { prefix: 'year=2026/month=11/' },
        response: { files: [{ key: fileKey, size: 48213, lastModified: '2026-11-15T09:31:00.000Z' }] },
      },
    },
    getTopicFileDownloadUrl: {
      method: 'GET',
      path: '/v1/organization/{organizationName}/topic/{topicName}/files/download',
      group: 'Topics',
      summary: 'Get a URL to download one file',
      description: 'It works for 15 minutes without a credential, with Range, for that one file.',
      access: viewer,
      parameters: {
        path: inTopic,
        query: strict({
          key: Type.String({
            minLength: 1,
            maxLength: 1024,
            ...withoutNul,
            description: 'The key of the file.',
          }),
        }),
      },
      responses: { 200: { description: 'The URL.', schema: types.FileDownloadUrlResponse } },
      problems: ['BATCH_REQUIRED', 'FILE_NOT_FOUND', 'TOPIC_NOT_FOUND'],
      example: {
        path: clicks,
        query: { key: fileKey },
        response: {
          url: 'http://127.0.0.1:8080/v1/objects/lake/acme.parquet?signature=...',
          expiresAt: '2026-11-15T09:45:00.000Z',
        },
      },
    },
  });
}
