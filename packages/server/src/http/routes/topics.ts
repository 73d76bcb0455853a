import type { Organization } from '../../organizations/organization-store.ts';
import { Problem } from '../../platform/problem.ts';
import type { TopicsDocument } from '../../topics/definition.ts';
import type { Topics } from '../../topics/topics.ts';
import { answer, type HandlersOf } from '../handlers.ts';

export function topicHandlers(
  topics: Topics,
): HandlersOf<'getTopics' | 'updateDefaultTopic' | 'updateTopic' | 'deleteTopic'> {
  return {
    getTopics: async ({ organization }) => describe(organization, await topics.get(organization.id)),
    updateDefaultTopic: async ({ organization, query, body }) =>
      describe(organization, await topics.setUndefined(organization.id, body, query.expectedVersion)),
    updateTopic: async ({ organization, path, query, body }) =>
      describe(
        organization,
        await topics.setTopic(organization.id, path.topicName, body, query.expectedVersion),
      ),
    deleteTopic: async ({ organization, path, query }) =>
      describe(
        organization,
        await topics.deleteTopic(organization.id, path.topicName, query.expectedVersion),
      ),
  };
}

function describe(organization: Organization, outcome: TopicsDocument | Problem) {
  if (outcome instanceof Problem) return outcome;
  return answer({
    organizationName: organization.name,
    allowUndefinedTopics: outcome.allowUndefined,
    ...(outcome.undefinedTopic === undefined ? {} : { undefinedTopic: outcome.undefinedTopic }),
    topics: Object.fromEntries(outcome.topics),
    version: outcome.version,
  });
}
