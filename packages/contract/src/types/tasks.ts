import Type from 'typebox';
import type { Limits } from '../limits.ts';
import { Identifier, oneOf, patternWords, strict, TaskId, Timestamp, TopicName, text } from '../names.ts';

export const invocationTypes = ['RequestResponse', 'Event'] as const;

export const runtimes = [
  'NODEJS20_X',
  'NODEJS22_X',
  'NODEJS24_X',
  'NODEJS26_X',
  'JAVA21',
  'PYTHON3',
  'PROVIDED',
] as const;

export function uploadCodeRequest(limits: Limits) {
  return strict({
    taskId: TaskId,
    contentLengthBytes: Type.Integer({
      minimum: 1,
      maximum: limits.codeBytes,
      description: 'The exact size of the zip.',
    }),
  });
}

export const UploadCodeResponse = strict({
  sessionId: Identifier,
  presignedUrl: Type.String({
    description: 'Accepts one PUT of exactly the announced number of bytes within 15 minutes.',
  }),
  codeUrl: Type.String({ description: 'Names the upload in deployVersion.' }),
});

const HttpToken = Type.String({
  minLength: 1,
  maxLength: 256,
  pattern: '^[\\x21-\\x7e]+$',
  [patternWords]: 'must be of ASCII characters, without white space',
});

export const EndpointCors = strict({
  allowOrigins: Type.Array(HttpToken, { maxItems: 100 }),
  allowMethods: Type.Array(HttpToken, { maxItems: 100 }),
  allowHeaders: Type.Array(HttpToken, { maxItems: 100 }),
  exposeHeaders: Type.Array(HttpToken, { maxItems: 100 }),
  allowCredentials: Type.Boolean(),
  maxAge: Type.Integer({ minimum: 0, maximum: 86_400, description: 'Seconds.' }),
});

export const DeployRequest = strict({
  codeUrl: text(2048, 'The codeUrl of uploadCode.'),
  handler: text(512, 'Where the code starts, such as `index.handler`.'),
  inputQueueNames: Type.Array(TopicName, { maxItems: 100, description: 'The streams that the task reads.' }),
  outputQueueNames: Type.Array(TopicName, { maxItems: 100, description: 'The topics it may publish to.' }),
  switchToNow: Type.Boolean({ description: 'Whether the new version becomes the active one.' }),
  runtime: Type.Optional(oneOf(runtimes, 'NODEJS20_X unless given.')),
  endpoint: Type.Optional(
    strict({
      isPublic: Type.Boolean({ description: 'Whether anybody may call it, or members only.' }),
      cors: Type.Optional(EndpointCors),
    }),
  ),
  dynamoState: Type.Optional(
    strict({
      lsiCount: Type.Integer({ minimum: 0, maximum: 10 }),
      gsiCount: Type.Integer({ minimum: 0, maximum: 10 }),
    }),
  ),
  description: Type.Optional(text(1024, 'What this version does.')),
  environment: Type.Optional(
    Type.Record(Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]{0,127}$' }), text(4096, 'A value.'), {
      description: 'Environment variables of the task.',
      [patternWords]: 'must be named with at most 128 letters, digits and _, not beginning with a digit',
      maxProperties: 100,
      additionalProperties: false,
    }),
  ),
  memoryMb: Type.Optional(Type.Integer({ minimum: 64, maximum: 4096, default: 256 })),
  timeoutSec: Type.Optional(Type.Integer({ minimum: 1, maximum: 900, default: 30 })),
  batchSize: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, default: 10 })),
  concurrency: Type.Optional(Type.Integer({ minimum: 1, maximum: 64, default: 1 })),
  maxAttempts: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 5 })),
});

export const TaskVersion = strict({
  taskId: TaskId,
  version: Type.String({ description: '"1", "2" and so on, immutable.' }),
  description: Type.String(),
});

export const deploymentStatuses = ['PROCESSING', 'SUCCESS', 'NOTFOUND', 'FAILED'] as const;

export const DeployVersionCheckResponse = strict({
  status: oneOf(deploymentStatuses),
  errorStr: Type.Optional(Type.String({ description: 'Why it failed.' })),
  result: Type.Optional(TaskVersion),
});

export const taskStatuses = [
  'CREATING',
  'STARTING',
  'UPDATING',
  'RUNNING',
  'PAUSING',
  'PAUSED',
  'NOTFOUND',
] as const;

export const TaskStatus = strict({
  taskId: TaskId,
  status: oneOf(taskStatuses),
  version: Type.Optional(Type.String({ description: 'The active version.' })),
  lastUpdateStatus: Type.Optional(oneOf(['SUCCESSFUL', 'FAILED', 'IN_PROGRESS'])),
  lastUpdateStatusReason: Type.Optional(Type.String()),
  endpointUrl: Type.Optional(Type.String()),
  inputQueueNames: Type.Optional(Type.Array(TopicName)),
  outputQueueNames: Type.Optional(Type.Array(TopicName)),
});

export const TaskStatuses = strict({ tasks: Type.Array(TaskStatus), cursor: Type.Optional(Type.String()) });

export const TaskVersions = strict({
  status: TaskStatus,
  versions: Type.Array(TaskVersion),
  endpointUrl: Type.Optional(Type.String()),
});

export const LogLine = strict({
  time: Timestamp,
  version: Type.String(),
  requestId: Type.String(),
  stream: oneOf(['stdout', 'stderr', 'system'], '`system` is what the service has to say about the task.'),
  text: Type.String(),
});
export const TaskLogs = strict({ lines: Type.Array(LogLine), nextCursor: Type.Optional(Type.String()) });

export const InvokeRequest = strict({
  event: Type.Unknown({ description: 'The event given to the handler.' }),
});
export const InvokeResponse = strict({
  result: Type.Optional(Type.Unknown({ description: 'What the handler returned.' })),
  error: Type.Optional(strict({ type: Type.String(), message: Type.String() })),
  logs: Type.Array(LogLine),
  durationMs: Type.Number(),
});

export const DeadLetter = strict({
  id: Type.String(),
  topic: TopicName,
  stream: TopicName,
  messageKey: Type.String(),
  messageId: Type.String(),
  body: Type.String({ description: 'The message; a binary one in base64.' }),
  attempts: Type.Integer(),
  error: Type.String(),
  failedAt: Timestamp,
});
export const DeadLetters = strict({
  entries: Type.Array(DeadLetter),
  nextCursor: Type.Optional(Type.String()),
});
export const RedriveRequest = strict({
  ids: Type.Optional(Type.Array(Identifier, { maxItems: 1000, description: 'Which; all unless given.' })),
});
export const Redriven = strict({ redriven: Type.Integer() });
export const Purged = strict({ purged: Type.Integer() });
