import type { EventLog, EventRecord } from '../../events/events.ts';
import type { Ingest } from '../../ingest/ingest.ts';
import { tail } from '../../ingest/tail.ts';
import { timestamp } from '../../platform/clock.ts';
import { Problem, problem } from '../../platform/problem.ts';
import type { Topics } from '../../topics/topics.ts';
import { answer, type HandlersOf, stream } from '../handlers.ts';

export function publishingHandlers(
  ingest: Ingest,
  topics: Topics,
  log: EventLog,
): HandlersOf<'message' | 'messages' | 'tail'> {
  return {
    message: async ({ organization, path, query, content, body }) => {
      const publication = { organizationId: organization.id, topicName: path.topicName, ...content, body };
      const outcome = await ingest.publish(publication, query);
      return outcome instanceof Problem ? outcome : answer(outcome);
    },
    messages: async ({ organization, path, query, content, body }) => {
      const publication = { organizationId: organization.id, topicName: path.topicName, ...content, body };
      const outcome = await ingest.publishMany(publication, query);
      return outcome instanceof Problem ? outcome : answer(outcome);
    },
    tail: async ({ organization, path, query, stopping }) => {
      const topic = { organizationId: organization.id, topicName: path.topicName };
      if ((await topics.resolve(topic.organizationId, topic.topicName)) === undefined) {
        return problem('TOPIC_NOT_FOUND');
      }
      const options = { topic, messageKey: query.messageKey, signal: stopping };
      return stream('text/event-stream; charset=utf-8', serverSentEvents(log, options));
    },
  };
}

/** A topic as server-sent events. Silence is filled with comments, so that nobody takes it for a lost line. */
async function* serverSentEvents(log: EventLog, options: Parameters<typeof tail>[1]): AsyncGenerator<string> {
  yield ': following\n\n';
  for await (const event of tail(log, options)) {
    if (event.kind === 'quiet') yield ': nothing new\n\n';
    else if (event.kind === 'dropped')
      yield `event: dropped\ndata: ${JSON.stringify({ messages: event.count })}\n\n`;
    else yield `data: ${describe(event.record)}\n\n`;
  }
}

/** JSON is shown as it is, text as a string, and anything else in base64. */
function describe(record: EventRecord): string {
  const { key, id, acceptedAt, mediaType, body } = record;
  const head = JSON.stringify({ messageKey: key, messageId: id, acceptedAt: timestamp(acceptedAt) });
  return `${head.slice(0, -1)},"body":${bodyOf(mediaType, body)}}`;
}

function bodyOf(mediaType: string, body: Uint8Array): string {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  if (mediaType === 'application/json') {
    // A line break ends a server-sent event's line; in JSON it is only ever white space between values.
    const text = bytes.toString('utf8').replace(/[\r\n]+/g, ' ');
    if (isJson(text)) return text;
  }
  return JSON.stringify(mediaType.startsWith('text/') ? bytes.toString('utf8') : bytes.toString('base64'));
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
