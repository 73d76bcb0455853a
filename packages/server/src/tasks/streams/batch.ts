import { isUtf8 } from 'node:buffer';
import { hash } from 'node:crypto';
import type { Delivery, Failure } from '../../consumers/consumer.ts';
import type { EventRecord } from '../../events/events.ts';

/** Media types whose bodies are text. Existing clients send JSON as bytes of no type, so those may be. */
const textual =
  /^(?:$|text\/|application\/(?:octet-stream|json|xml|x-ndjson|x-www-form-urlencoded|javascript|yaml|graphql)$|[^;]*\+(?:json|xml)$)/;

/** The body of a message as text; a binary one in base64. */
export function bodyText({ body, mediaType }: Pick<EventRecord, 'body' | 'mediaType'>): string {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  return textual.test(mediaType) && isUtf8(bytes) ? bytes.toString('utf8') : bytes.toString('base64');
}

/** The stream that a message came to a task by: the first of its routes that the task reads. */
export function streamOf(
  record: Pick<EventRecord, 'routes'>,
  inputs: ReadonlySet<string>,
): string | undefined {
  return record.routes.streams.find((stream) => inputs.has(stream));
}

/** The event of a batch, in the shape that a queue gives to a function. */
export function batchEvent(
  batch: readonly Delivery[],
  organizationName: string,
  inputs: ReadonlySet<string>,
): Uint8Array {
  const records = batch.map(({ address, record, attempt }) => {
    const body = bodyText(record);
    const stream = streamOf(record, inputs) ?? address.topicName;
    return {
      messageId: record.id,
      receiptHandle: `${address.topicName}/${address.partition}/${record.offset}/${attempt}`,
      body,
      attributes: {
        MessageGroupId: record.key,
        MessageDeduplicationId: record.id,
        SentTimestamp: String(record.acceptedAt),
        ApproximateReceiveCount: String(attempt),
        SequenceNumber: String(record.offset).padStart(20, '0'),
      },
      messageAttributes: {},
      md5OfBody: hash('md5', body, 'hex'),
      eventSource: 'aws:sqs',
      eventSourceARN: `arn:aws:sqs:local:000000000000:customer-${organizationName}-${stream}`,
      awsRegion: 'local',
    };
  });
  return Buffer.from(JSON.stringify({ Records: records }));
}

/**
 * Which of a batch failed, by the answer of the task: those that it names in `batchItemFailures`, none when
 * it names none, and all when the list is no such list or names what is not in the batch.
 */
export function failuresOf(payload: Uint8Array, batch: readonly Delivery[]): readonly Failure[] {
  const named = namedFailures(payload);
  if (typeof named === 'string') return failAll(batch.length, named);
  if (named.size === 0) return [];
  const failures: Failure[] = [];
  const known = new Set<string>();
  for (const [index, { record }] of batch.entries()) {
    known.add(record.id);
    if (named.has(record.id)) failures.push({ index, error: 'The task named it in batchItemFailures.' });
  }
  const stranger = [...named].find((id) => !known.has(id));
  if (stranger === undefined) return failures;
  return failAll(
    batch.length,
    `batchItemFailures names ${JSON.stringify(stranger)}, which was not in the batch.`,
  );
}

export function failAll(count: number, error: string): readonly Failure[] {
  return Array.from({ length: count }, (_value, index) => ({ index, error }));
}

/** The ids of an answer, or what is wrong with it. */
function namedFailures(payload: Uint8Array): ReadonlySet<string> | string {
  const bytes = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
  // Nearly every answer says nothing, and is not worth parsing.
  if (!bytes.includes('batchItemFailures')) return new Set();
  let answer: unknown;
  try {
    answer = JSON.parse(bytes.toString('utf8'));
  } catch {
    return 'The answer of the task is not JSON.';
  }
  if (typeof answer !== 'object' || answer === null || !('batchItemFailures' in answer)) return new Set();
  const { batchItemFailures } = answer;
  if (batchItemFailures === null) return new Set();
  const malformed = 'batchItemFailures of the answer must be a list of {itemIdentifier}.';
  if (!Array.isArray(batchItemFailures)) return malformed;
  const ids = new Set<string>();
  for (const item of batchItemFailures) {
    const id: unknown =
      typeof item === 'object' && item !== null && 'itemIdentifier' in item ? item.itemIdentifier : undefined;
    if (typeof id !== 'string' || id === '') return malformed;
    ids.add(id);
  }
  return ids;
}
