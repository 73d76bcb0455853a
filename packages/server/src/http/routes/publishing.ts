import type { EventLog } from '../../events/events.ts';
import type { Ingest } from '../../ingest/ingest.ts';
import { serverSentEvents } from '../../ingest/server-sent-events.ts';
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
    tail: async ({ organization, path, query, stopping, stillAllowed }) => {
      const topic = { organizationId: organization.id, topicName: path.topicName };
      if ((await topics.resolve(topic.organizationId, topic.topicName)) === undefined) {
        return problem('TOPIC_NOT_FOUND');
      }
      const options = { topic, messageKey: query.messageKey, signal: stopping };
      return stream('text/event-stream; charset=utf-8', serverSentEvents(log, options, stillAllowed));
    },
  };
}
