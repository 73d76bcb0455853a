import Type from 'typebox';
import type { Limits } from '../limits.ts';
import { inTopic, patternWords, strict, withoutNul } from '../names.ts';
import { defineOperations } from '../operation.ts';
import type { Types } from '../types/index.ts';
import { clicks } from './examples.ts';

const publisher = { kind: 'organization', role: 'MEMBER', restrictedKey: true, taskKey: 'outputs' } as const;

const MessageKey = Type.String({
  minLength: 1,
  maxLength: 1024,
  ...withoutNul,
  description: 'Messages of one key keep their order.',
});
const Pointer = Type.String({
  minLength: 1,
  maxLength: 1024,
  pattern: '^(/([^~/]|~[01])*)+$',
  [patternWords]: 'must be a JSON pointer, such as /user/id',
  description: 'A JSON pointer into each message.',
});

export function publishingOperations(types: Types, limits: Limits) {
  return defineOperations({
    message: {
      method: 'POST',
      path: '/v1/organization/{organizationName}/topic/{topicName}/message',
      group: 'Publishing',
      summary: 'Publish one message',
      description:
        'Any media type for streams; a JSON object where the topic has batch or store. The answer comes once the message is durable for every destination.',
      access: publisher,
      parameters: {
        path: inTopic,
        query: strict({
          messageKey: MessageKey,
          messageId: Type.Optional(
            Type.String({
              minLength: 1,
              maxLength: 1024,
              ...withoutNul,
              description:
                'A message with an id that was accepted before is a duplicate. One is made unless given.',
            }),
          ),
        }),
      },
      body: { raw: true, description: 'The message.', mediaTypes: ['any'] },
      responses: { 200: { description: 'Accepted and durable.', schema: types.Published } },
      problems: [
        'TOPIC_NOT_FOUND',
        'BODY_NOT_OBJECT',
        'MEDIA_TYPE_NOT_SUPPORTED',
        'OVERLOADED',
        'STORAGE_FULL',
      ],
      limits: { bodyBytes: limits.messageBytes },
      example: {
        path: clicks,
        query: { messageKey: 'user-42', messageId: 'c-1001' },
        body: { page: '/pricing', at: '2026-11-15T09:30:00.000Z' },
        response: { messageId: 'c-1001', duplicate: false },
      },
    },
    messages: {
      method: 'POST',
      path: '/v1/organization/{organizationName}/topic/{topicName}/messages',
      group: 'Publishing',
      summary: 'Publish many messages',
      description:
        'NDJSON or a JSON array, gzip accepted. Messages that cannot be accepted are listed by index; every other one is durable.',
      access: publisher,
      parameters: {
        path: inTopic,
        query: strict({ messageKeyPath: Type.Optional(Pointer), messageIdPath: Type.Optional(Pointer) }),
      },
      body: {
        raw: true,
        description: 'The messages, one JSON document a line or as an array.',
        mediaTypes: ['application/x-ndjson', 'application/json'],
      },
      responses: { 200: { description: 'What became of each.', schema: types.PublishedMany } },
      problems: ['TOPIC_NOT_FOUND', 'OVERLOADED', 'STORAGE_FULL'],
      limits: { bodyBytes: limits.batchBytes },
      example: {
        path: clicks,
        query: { messageKeyPath: '/user', messageIdPath: '/id' },
        body: [
          { user: 'u1', id: 'c-1', page: '/' },
          { user: 'u2', id: 'c-2', page: '/pricing' },
        ],
        response: { accepted: 2, duplicates: 0, rejected: 0, errors: [] },
      },
    },
    tail: {
      method: 'GET',
      path: '/v1/organization/{organizationName}/topic/{topicName}/tail',
      group: 'Publishing',
      summary: 'Follow the messages of a topic live',
      description: 'Server-sent events of {messageKey, messageId, acceptedAt, body}.',
      access: { kind: 'organization', role: 'VIEWER' },
      parameters: { path: inTopic, query: strict({ messageKey: Type.Optional(MessageKey) }) },
      responses: { 200: { description: 'A stream of events.', mediaTypes: ['text/event-stream'] } },
      problems: ['TOPIC_NOT_FOUND'],
      example: { path: clicks, query: { messageKey: 'user-42' } },
    },
  });
}
