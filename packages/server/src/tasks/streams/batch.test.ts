import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Delivery } from '../../consumers/consumer.ts';
import { batchEvent, failuresOf } from './batch.ts';

function delivery(
  id: string,
  body: string | Uint8Array,
  more: { mediaType?: string; attempt?: number } = {},
): Delivery {
  return {
    address: { organizationId: 'o1', topicName: 'clicks', partition: 3 },
    attempt: more.attempt ?? 1,
    record: {
      offset: 42,
      key: 'ada',
      id,
      acceptedAt: 1_790_000_000_123,
      mediaType: more.mediaType ?? 'application/json',
      routes: { streams: ['other', 'clicks', 'more'], lake: false, store: false },
      body: Buffer.from(body),
    },
  };
}

const inputs = new Set(['clicks', 'more']);
const eventOf = (...batch: Delivery[]) =>
  JSON.parse(Buffer.from(batchEvent(batch, 'Acme', inputs)).toString());

describe('the event of a batch', () => {
  it('has the shape of a batch of a queue', () => {
    assert.deepEqual(eventOf(delivery('m1', '{"n":1}', { attempt: 2 })), {
      Records: [
        {
          messageId: 'm1',
          receiptHandle: 'clicks/3/42/2',
          body: '{"n":1}',
          attributes: {
            MessageGroupId: 'ada',
            MessageDeduplicationId: 'm1',
            SentTimestamp: '1790000000123',
            ApproximateReceiveCount: '2',
            SequenceNumber: '00000000000000000042',
          },
          messageAttributes: {},
          md5OfBody: '082c26c8a6bc75226a31da5495cc9292',
          eventSource: 'aws:sqs',
          eventSourceARN: 'arn:aws:sqs:local:000000000000:customer-Acme-clicks',
          awsRegion: 'local',
        },
      ],
    });
  });

  it('has text as text and a binary body as base64', () => {
    const binary = Uint8Array.of(0xff, 0xd8, 0);
    const bodies = eventOf(
      delivery('a', 'größe 漢', { mediaType: 'text/plain' }),
      delivery('b', binary, { mediaType: 'image/jpeg' }),
      delivery('c', binary, { mediaType: 'application/octet-stream' }),
      delivery('d', '{}', { mediaType: 'application/octet-stream' }),
      // Also where it happens to be text, so that a task can rely on it.
      delivery('e', 'abc', { mediaType: 'application/x-protobuf' }),
      delivery('f', '{}', { mediaType: 'application/cloudevents+json' }),
      delivery('g', '', { mediaType: '' }),
    ).Records.map((record: { body: string }) => record.body);
    assert.deepEqual(bodies, ['größe 漢', '/9gA', '/9gA', '{}', 'YWJj', '{}', '']);
  });
});

describe('the answer to a batch', () => {
  const batch = [delivery('a', ''), delivery('b', ''), delivery('c', '')];
  const failed = (answer: string) => failuresOf(Buffer.from(answer), batch).map(({ index }) => index);

  it('is good for all when it names no failures, whatever else it says', () => {
    for (const answer of [
      'null',
      '{}',
      '',
      '"done"',
      '{"batchItemFailures":[]}',
      '{"batchItemFailures":null}',
      '7',
    ]) {
      assert.deepEqual(failed(answer), [], answer);
    }
  });

  it('fails exactly those that it names', () => {
    assert.deepEqual(failed('{"batchItemFailures":[{"itemIdentifier":"c"},{"itemIdentifier":"a"}]}'), [0, 2]);
  });

  it('fails the whole batch when it is malformed or names a stranger', () => {
    for (const list of [
      '{}',
      '"a"',
      '[null]',
      '["a"]',
      '[{}]',
      '[{"itemIdentifier":""}]',
      '[{"itemIdentifier":7}]',
      '[{"itemIdentifier":"x"}]',
    ]) {
      assert.deepEqual(failed(`{"batchItemFailures":${list}}`), [0, 1, 2], list);
    }
    assert.deepEqual(failed('{"batchItemFailures":[{'), [0, 1, 2]);
  });
});
