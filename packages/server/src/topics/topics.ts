import type { Kysely } from 'kysely';
import type { Database } from '../database/database.ts';
import type { Schema } from '../database/schema.ts';
import { LoadingCache } from '../platform/cache.ts';
import type { Clock } from '../platform/clock.ts';
import { type FieldError, Problem, problem } from '../platform/problem.ts';
import { definitionErrors, streamsOf, type TopicDefinition, type TopicsDocument } from './definition.ts';
import { readTopics, writeTopics } from './topic-store.ts';

/** Where the messages of a topic go, as its definition says at this moment. */
export interface ResolvedTopic {
  readonly routes: { readonly streams: readonly string[]; readonly lake: boolean; readonly store: boolean };
  readonly definition: TopicDefinition;
}

/**
 * Judges a change of the topics by what others make of them, within the transaction of the change: undefined
 * lets it through.
 */
export type TopicsJudge = (
  queries: Kysely<Schema>,
  organizationId: string,
  present: TopicsDocument,
  next: TopicsDocument,
) => Promise<Problem | undefined>;

interface Known {
  readonly document: TopicsDocument;
  /** What was resolved since the document was read: publishing costs one look-up. */
  readonly resolved: Map<string, ResolvedTopic>;
}

const channel = 'topics';
/** Undefined topics have any name, so what is remembered of them is bounded. */
const rememberedTopics = 10_000;
const rememberedDeletionMilliseconds = 90 * 86_400_000;

/** The topic definitions of organizations: read on every publish from memory, changed one at a time. */
export class Topics {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #judge: TopicsJudge;
  readonly #known: LoadingCache<Known>;

  constructor(database: Database, clock: Clock, judge: TopicsJudge = async () => undefined) {
    this.#database = database;
    this.#clock = clock;
    this.#judge = judge;
    this.#known = new LoadingCache({
      load: async (id) => ({ document: await readTopics(database.query, id), resolved: new Map() }),
      clock,
      trustMilliseconds: database.trustMilliseconds,
      capacity: 10_000,
    });
    database.listen(
      channel,
      (id) => this.#known.invalidate(id),
      () => this.#known.clear(),
    );
  }

  async get(organizationId: string): Promise<TopicsDocument> {
    return (await this.#load(organizationId)).document;
  }

  /** The definitions as a transaction sees them, for what must not be decided on yesterday's. */
  read(queries: Kysely<Schema>, organizationId: string): Promise<TopicsDocument> {
    return readTopics(queries, organizationId);
  }

  /** Is told of organizations whose topics have changed; `missed` is called when some may have been missed. */
  listen(hear: (organizationId: string) => void, missed: () => void): () => void {
    return this.#database.listen(channel, hear, missed);
  }

  /** Where a message goes; undefined when there is no such topic and none may be made up. */
  resolve(
    organizationId: string,
    topicName: string,
  ): ResolvedTopic | undefined | Promise<ResolvedTopic | undefined> {
    const known = this.#known.peek(organizationId);
    if (known !== undefined) return resolveIn(known, topicName);
    return this.#load(organizationId).then((loaded) => resolveIn(loaded, topicName));
  }

  async setTopic(
    organizationId: string,
    topicName: string,
    definition: TopicDefinition,
    expectedVersion: number | undefined,
  ): Promise<TopicsDocument | Problem> {
    const errors = definitionErrors(definition);
    if (errors.length > 0) return invalid(errors);
    return this.#change(organizationId, expectedVersion, (document) => {
      const deleted = new Map(document.deleted);
      deleted.delete(topicName);
      return { ...document, topics: new Map(document.topics).set(topicName, definition), deleted };
    });
  }

  setUndefined(
    organizationId: string,
    change: { readonly allowUndefined: boolean; readonly topic?: TopicDefinition | undefined },
    expectedVersion: number | undefined,
  ): Promise<TopicsDocument | Problem> {
    const errors = change.topic === undefined ? [] : definitionErrors(change.topic, '/topic');
    if (errors.length > 0) return Promise.resolve(invalid(errors));
    return this.#change(organizationId, expectedVersion, (document) => ({
      ...document,
      allowUndefined: change.allowUndefined,
      undefinedTopic: change.topic,
    }));
  }

  deleteTopic(
    organizationId: string,
    topicName: string,
    expectedVersion: number | undefined,
  ): Promise<TopicsDocument | Problem> {
    return this.#change(organizationId, expectedVersion, (document) => {
      if (!document.topics.has(topicName)) {
        return problem('TOPIC_NOT_FOUND', `There is no topic named ${topicName}.`);
      }
      const topics = new Map(document.topics);
      topics.delete(topicName);
      return { ...document, topics, deleted: this.#remember(document.deleted, topicName) };
    });
  }

  /** Deletions, with one more. Whoever acts on them has done so long before they are forgotten. */
  #remember(deleted: ReadonlyMap<string, number>, topicName: string): Map<string, number> {
    const now = this.#clock.now();
    const recent = [...deleted].filter(([, at]) => at > now - rememberedDeletionMilliseconds);
    return new Map(recent).set(topicName, now);
  }

  async #load(organizationId: string): Promise<Known> {
    const known = await this.#known.get(organizationId);
    if (known === undefined) throw new Error('topics are always there');
    return known;
  }

  /** Changes the document in one transaction, if it still has the version that the caller has seen. */
  async #change(
    organizationId: string,
    expectedVersion: number | undefined,
    change: (document: TopicsDocument) => TopicsDocument | Problem,
  ): Promise<TopicsDocument | Problem> {
    const outcome = await this.#database.transaction(async (transaction) => {
      const present = await readTopics(transaction, organizationId);
      if (expectedVersion !== undefined && expectedVersion !== present.version) {
        const detail = `The topics have version ${present.version}, and version ${expectedVersion} was expected.`;
        return problem('VERSION_MISMATCH', detail);
      }
      const changed = change(present);
      if (changed instanceof Problem) return changed;
      const refusal = await this.#judge(transaction, organizationId, present, changed);
      if (refusal !== undefined) return refusal;
      const next = { ...changed, version: present.version + 1 };
      await writeTopics(transaction, organizationId, next);
      return next;
    });
    if (!(outcome instanceof Problem)) await this.#database.announce(channel, organizationId);
    return outcome;
  }
}

function resolveIn(known: Known, topicName: string): ResolvedTopic | undefined {
  const before = known.resolved.get(topicName);
  if (before !== undefined) return before;
  const { document } = known;
  const defined = document.topics.get(topicName);
  if (defined === undefined && !document.allowUndefined) return undefined;
  const definition = defined ?? document.undefinedTopic ?? {};
  const resolved: ResolvedTopic = {
    definition,
    routes: {
      streams: streamsOf(document, topicName),
      lake: definition.batch !== undefined,
      store: definition.store !== undefined,
    },
  };
  if (known.resolved.size >= rememberedTopics) known.resolved.clear();
  known.resolved.set(topicName, resolved);
  return resolved;
}

function invalid(errors: FieldError[]): Problem {
  const [first] = errors;
  return problem('VALIDATION_FAILED', `The topic is not valid: ${first?.pointer} ${first?.message}.`, {
    errors,
  });
}
