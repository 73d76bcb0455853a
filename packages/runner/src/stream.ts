import type { TaskContext } from './context.ts';
import { log } from './log.ts';

/** A record of a batch, as the service sends it. */
export interface StreamRecord {
  readonly messageId: string;
  readonly body: string;
  readonly attributes: {
    readonly MessageGroupId: string;
    readonly MessageDeduplicationId: string;
    readonly SentTimestamp: string;
    readonly ApproximateReceiveCount: string;
    readonly SequenceNumber: string;
  };
  readonly eventSourceARN: string;
}

export interface StreamEvent {
  readonly Records: readonly StreamRecord[];
}

export interface StreamAnswer {
  readonly batchItemFailures: { readonly itemIdentifier: string }[];
}

/** A message with what is known about it. */
export interface StreamMessage<Body> {
  readonly body: Body;
  readonly key: string;
  readonly id: string;
  readonly acceptedAt: Date;
  /** Counts from 1. */
  readonly attempt: number;
  /** The stream it came from. */
  readonly stream: string;
}

export interface StreamOptions<Body> {
  /** Turns the text of a message into what the handler takes; `JSON.parse` unless given. */
  readonly parse?: (text: string) => Body;
  /** Keys worked on at the same time; 16 unless given. Messages of one key come one after the other. */
  readonly concurrency?: number;
}

/**
 * A handler of a stream that takes one message at a time. A message whose handling throws is reported as
 * failed, together with those of its key that come after it in the batch, so that their order holds; all
 * others count as done.
 *
 * @example
 * ```ts
 * export const handler = streamHandler<{ page: string }>(async (message) => {
 *   await publish('enriched', { ...message.body, seen: true }, { key: message.key, id: message.id });
 * });
 * ```
 */
export function streamHandler<Body>(
  handle: (message: StreamMessage<Body>, context: TaskContext) => Promise<void> | void,
  options: StreamOptions<Body> = {},
): (event: StreamEvent, context: TaskContext) => Promise<StreamAnswer> {
  const { parse = JSON.parse, concurrency = 16 } = options;
  return async (event, context) => {
    const keys = [...groupByKey(event.Records)];
    const failed: StreamRecord[] = [];
    const work = async () => {
      for (let records = keys.shift(); records !== undefined; records = keys.shift()) {
        for (const [index, record] of records.entries()) {
          try {
            await handle(messageOf(record, parse), context);
          } catch (error) {
            log.error('a message failed', { messageId: record.messageId, error });
            failed.push(...records.slice(index));
            break;
          }
        }
      }
    };
    await Promise.all(Array.from({ length: Math.min(concurrency, keys.length) }, work));
    return { batchItemFailures: failed.map((record) => ({ itemIdentifier: record.messageId })) };
  };
}

function groupByKey(records: readonly StreamRecord[]): Iterable<StreamRecord[]> {
  const keys = new Map<string, StreamRecord[]>();
  for (const record of records) {
    const key = record.attributes.MessageGroupId;
    const same = keys.get(key);
    if (same === undefined) keys.set(key, [record]);
    else same.push(record);
  }
  return keys.values();
}

function messageOf<Body>(record: StreamRecord, parse: (text: string) => Body): StreamMessage<Body> {
  const { attributes, eventSourceARN } = record;
  return {
    body: parse(record.body),
    key: attributes.MessageGroupId,
    id: attributes.MessageDeduplicationId,
    acceptedAt: new Date(Number(attributes.SentTimestamp)),
    attempt: Number(attributes.ApproximateReceiveCount),
    stream: streamOf(eventSourceARN),
  };
}

/** Both names may have dashes in them, so the one that is known says where the other begins. */
function streamOf(eventSourceArn: string): string {
  const name = eventSourceArn.slice(eventSourceArn.lastIndexOf(':customer-') + ':customer-'.length);
  const organization = process.env.MILLRACE_ORGANIZATION;
  if (organization !== undefined && name.startsWith(`${organization}-`))
    return name.slice(organization.length + 1);
  return name.slice(name.indexOf('-') + 1);
}
