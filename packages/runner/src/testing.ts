import { MillraceError } from '@millrace/client/parts';
import type { TaskContext } from './context.ts';
import type { EndpointAnswer, EndpointEvent } from './endpoint.ts';
import { type TaskService, useService } from './service.ts';
import type { StreamAnswer, StreamEvent } from './stream.ts';

type Entry = Awaited<ReturnType<TaskService['set']>>;

export interface TestMessage {
  readonly body: object | string;
  readonly key?: string;
  readonly id?: string;
  readonly attempt?: number;
}

export interface PublishedMessage {
  readonly topic: string;
  readonly message: object | string;
  readonly key: string;
  readonly id: string;
}

/** What is around a handler under test, instead of a service. */
export interface TestKit {
  /** What was published, oldest first. */
  readonly published: readonly PublishedMessage[];
  /** The state: entries by their key parts, joined with `:`. */
  readonly entries: ReadonlyMap<string, Entry>;
  /** Gives messages to a handler of a stream as one batch; answers the ids of those that failed. */
  stream(
    handler: (
      event: StreamEvent,
      context: TaskContext,
    ) => Promise<StreamAnswer | undefined> | StreamAnswer | undefined,
    messages: readonly TestMessage[],
  ): Promise<{ readonly failed: readonly string[] }>;
  /** Sends a request to a handler of an endpoint. */
  endpoint(
    handler: (event: EndpointEvent, context: TaskContext) => Promise<EndpointAnswer>,
    path: string,
    request?: { readonly method?: string; readonly headers?: Record<string, string>; readonly body?: string },
  ): Promise<EndpointAnswer>;
}

/**
 * Runs handlers without a server: publishing and state happen in memory until the kit is let go of.
 *
 * @example
 * ```ts
 * using kit = testKit();
 * const { failed } = await kit.stream(handler, [{ key: 'user-42', body: { page: '/' } }]);
 * console.log(failed, kit.published);
 * ```
 */
export function testKit(): TestKit & Disposable {
  const published: PublishedMessage[] = [];
  const entries = new Map<string, Entry>();
  useService(serviceInMemory(published, entries));
  return {
    published,
    entries,
    stream: async (handler, messages) => {
      const answer = await handler({ Records: messages.map(recordOf) }, testContext());
      return { failed: (answer?.batchItemFailures ?? []).map((failure) => failure.itemIdentifier) };
    },
    endpoint: (handler, path, { method = 'GET', headers = {}, body } = {}) => {
      const { pathname, search } = new URL(path, 'http://localhost');
      const event: EndpointEvent = {
        rawPath: pathname,
        rawQueryString: search.slice(1),
        headers: { host: 'localhost', ...headers },
        requestContext: { http: { method, sourceIp: '127.0.0.1' } },
        ...(body === undefined ? {} : { body }),
        isBase64Encoded: false,
      };
      return handler(event, testContext());
    },
    [Symbol.dispose]: () => useService(undefined),
  };
}

function testContext(): TaskContext {
  const ends = Date.now() + 30_000;
  return {
    awsRequestId: crypto.randomUUID(),
    functionName: 'test',
    functionVersion: '1',
    getRemainingTimeInMillis: () => Math.max(0, ends - Date.now()),
  };
}

function recordOf(
  { body, key = 'key', id, attempt = 1 }: TestMessage,
  index: number,
): StreamEvent['Records'][number] {
  const messageId = id ?? `message-${index + 1}`;
  return {
    messageId,
    body: typeof body === 'string' ? body : JSON.stringify(body),
    attributes: {
      MessageGroupId: key,
      MessageDeduplicationId: messageId,
      SentTimestamp: String(Date.now()),
      ApproximateReceiveCount: String(attempt),
      SequenceNumber: String(index + 1),
    },
    eventSourceARN: 'arn:aws:sqs:local:000000000000:customer-test-stream',
  };
}

function serviceInMemory(published: PublishedMessage[], entries: Map<string, Entry>): TaskService {
  const ids = new Set<string>();
  const keyOf = (keyParts: readonly string[]) =>
    keyParts.map((part) => part.replace(/[\\:]/g, '\\$&')).join(':');
  const write = (
    keyParts: readonly string[],
    attributes: Record<string, unknown>,
    ttlInSec?: number,
  ): Entry => {
    const mergedKey = keyOf(keyParts);
    const entry: Entry = {
      keyParts: [...keyParts],
      mergedKey,
      attributes,
      version: (entries.get(mergedKey)?.version ?? 0) + 1,
      ...(ttlInSec === undefined ? {} : { ttlInEpochSec: Math.floor(Date.now() / 1000) + ttlInSec }),
    };
    entries.set(mergedKey, entry);
    return entry;
  };
  const take = (topic: string, message: object | string, key: string, id: string): boolean => {
    if (ids.has(`${topic}/${id}`)) return false;
    ids.add(`${topic}/${id}`);
    published.push({ topic, message, key, id });
    return true;
  };
  return {
    publish: async (topic, message, { key, id = crypto.randomUUID() }) => ({
      messageId: id,
      duplicate: !take(topic, message, key, id),
    }),
    publishMany: async (topic, messages, { keyPath, idPath }) => {
      const accepted = messages.filter((message) => {
        const key = at(message, keyPath);
        const id = idPath === undefined ? crypto.randomUUID() : at(message, idPath);
        return take(topic, message, key, id);
      }).length;
      return { accepted, duplicates: messages.length - accepted };
    },
    get: async (keyParts) => entries.get(keyOf(keyParts)),
    set: async (keyParts, attributes, { ttlInSec, expectedVersion }) => {
      const version = entries.get(keyOf(keyParts))?.version ?? 0;
      if (expectedVersion !== undefined && expectedVersion !== version) {
        const detail = `The entry has version ${version}, not ${expectedVersion}.`;
        throw new MillraceError({ code: 'VERSION_MISMATCH', status: 409, detail });
      }
      return write(keyParts, attributes, ttlInSec);
    },
    increment: async (keyParts, attribute, { by = 1, ttlInSec }) => {
      const attributes = { ...entries.get(keyOf(keyParts))?.attributes };
      const before = attributes[attribute] ?? 0;
      if (typeof before !== 'number')
        throw new MillraceError({ code: 'NOT_A_NUMBER', status: 400, detail: `${attribute} is no number.` });
      return write(keyParts, { ...attributes, [attribute]: before + by }, ttlInSec);
    },
    delete: async (keyParts) => {
      entries.delete(keyOf(keyParts));
    },
  };
}

/** The text that a JSON pointer leads to. */
function at(message: object, pointer: string): string {
  let value: unknown = message;
  for (const part of pointer.split('/').slice(1)) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~');
    value = new Map<string, unknown>(Object.entries(Object(value))).get(name);
  }
  if (typeof value === 'string' || typeof value === 'number') return String(value);
  throw new MillraceError({ code: 'VALIDATION_FAILED', status: 200, detail: `has no text at ${pointer}` });
}
