import type { NamedType } from '@millrace/contract';
import type { FieldError } from '../platform/problem.ts';

/** What becomes of the messages of a topic. */
export type TopicDefinition = NamedType<'Topic'>;

/** How a message becomes a state entry: which fields are its key. */
export type StoreKey = NamedType<'StoreKey'>;

/** All topics of an organization. Every change makes one more version. */
export interface TopicsDocument {
  readonly allowUndefined: boolean;
  /** What becomes of messages to topics that are not defined. */
  readonly undefinedTopic?: TopicDefinition | undefined;
  readonly topics: ReadonlyMap<string, TopicDefinition>;
  /** When topics were deleted that were not defined again since; those of long ago are forgotten. */
  readonly deleted: ReadonlyMap<string, number>;
  readonly version: number;
}

/** A new organization takes any topic and lets its messages land in the lake. */
export const initialDocument: TopicsDocument = {
  allowUndefined: true,
  undefinedTopic: { batch: {} },
  topics: new Map(),
  deleted: new Map(),
  version: 0,
};

/**
 * The streams that a topic feeds. An undefined topic also feeds the stream of its own name, so that a task
 * on it just works.
 */
export function streamsOf(document: TopicsDocument, topicName: string): readonly string[] {
  const defined = document.topics.get(topicName);
  if (defined === undefined && !document.allowUndefined) return [];
  const streams = ((defined ?? document.undefinedTopic)?.streams ?? []).map((stream) => stream.name);
  return defined === undefined ? [...new Set([...streams, topicName])] : streams;
}

/** What a schema cannot say about a definition: its keys and streams must make sense together. */
export function definitionErrors(definition: TopicDefinition, at = ''): FieldError[] {
  const errors: FieldError[] = [];
  const streams = (definition.streams ?? []).map((stream) => stream.name);
  for (const [index, name] of streams.entries()) {
    if (streams.indexOf(name) !== index) {
      errors.push({ pointer: `${at}/streams/${index}/name`, message: 'names a stream a second time' });
    }
  }
  const keys = definition.store?.keys ?? [];
  const seen = new Set<string>();
  for (const [index, key] of keys.entries()) {
    const place = `${at}/store/keys/${index}`;
    if (key.tableType === 'PRIMARY' && key.indexNumber !== undefined) {
      errors.push({ pointer: `${place}/indexNumber`, message: 'is only for GSI and LSI keys' });
    }
    if (key.tableType !== 'PRIMARY' && key.indexNumber === undefined) {
      errors.push({ pointer: `${place}/indexNumber`, message: 'is required for GSI and LSI keys' });
    }
    const name = `${key.tableType} ${key.indexNumber}`;
    if (key.tableType !== 'PRIMARY' && seen.has(name)) {
      errors.push({ pointer: place, message: `is a second key of ${name}` });
    }
    seen.add(name);
  }
  const primary = keys.filter((key) => key.tableType === 'PRIMARY').length;
  if (definition.store !== undefined && primary !== 1) {
    errors.push({ pointer: `${at}/store/keys`, message: 'must have exactly one PRIMARY key' });
  }
  return errors;
}
