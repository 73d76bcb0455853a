import type { Kysely } from 'kysely';
import type { Schema } from '../database/schema.ts';
import { initialDocument, type TopicDefinition, type TopicsDocument } from './definition.ts';

type Queries = Kysely<Schema>;

interface StoredDocument {
  readonly allowUndefined: boolean;
  readonly undefinedTopic?: TopicDefinition;
  readonly topics: readonly (readonly [string, TopicDefinition])[];
  readonly deleted?: readonly (readonly [string, number])[];
}

export async function readTopics(queries: Queries, organizationId: string): Promise<TopicsDocument> {
  const row = await queries
    .selectFrom('topic_definitions')
    .select(['version', 'document'])
    .where('organization_id', '=', organizationId)
    .executeTakeFirst();
  if (row === undefined) return initialDocument;
  const stored: StoredDocument = JSON.parse(row.document);
  return {
    ...stored,
    topics: new Map(stored.topics),
    deleted: new Map(stored.deleted),
    version: row.version,
  };
}

export async function writeTopics(
  queries: Queries,
  organizationId: string,
  topics: TopicsDocument,
): Promise<void> {
  const stored: StoredDocument = {
    allowUndefined: topics.allowUndefined,
    ...(topics.undefinedTopic === undefined ? {} : { undefinedTopic: topics.undefinedTopic }),
    // A list keeps the order, and a topic may have any name without being mistaken for a property.
    topics: [...topics.topics],
    ...(topics.deleted.size === 0 ? {} : { deleted: [...topics.deleted] }),
  };
  const values = { version: topics.version, document: JSON.stringify(stored) };
  await queries
    .insertInto('topic_definitions')
    .values({ organization_id: organizationId, ...values })
    .onConflict((conflict) => conflict.column('organization_id').doUpdateSet(values))
    .execute();
}
