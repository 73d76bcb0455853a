import { gunzip } from 'node:zlib';
import type { Limits } from '@millrace/contract';
import type { AppendEntry, EventLog } from '../events/events.ts';
import { partitionOf } from '../events/partition.ts';
import type { Clock } from '../platform/clock.ts';
import { isUtf8 } from '../platform/media-type.ts';
import { Problem, problem } from '../platform/problem.ts';
import { type Random, randomBase62 } from '../platform/random.ts';
import type { ResolvedTopic, Topics } from '../topics/topics.ts';
import { splitArray, splitLines, withoutByteOrderMark } from './documents.ts';
import { type PointerReader, pointerReader } from './pointer.ts';

export interface Publication {
  readonly organizationId: string;
  readonly topicName: string;
  readonly mediaType: string | undefined;
  readonly encoding: string | undefined;
  readonly body: Uint8Array;
}

/** What the publisher of one message says of it. */
export interface GivenNames {
  readonly messageKey: string;
  readonly messageId?: string | undefined;
}

export interface Published {
  readonly messageId: string;
  readonly duplicate: boolean;
}

export interface BatchErrors {
  readonly index: number;
  readonly code: string;
  readonly message: string;
}

export interface BatchOutcome {
  readonly accepted: number;
  readonly duplicates: number;
  readonly rejected: number;
  readonly errors: BatchErrors[];
}

const keyLength = 1024;
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
/** Media types under which existing clients send JSON objects. */
const jsonTypes = new Set(['application/json', 'application/octet-stream', '']);

/** Is told of topics whose messages go to a keyed store, so that somebody takes them there. */
export interface StoreFollower {
  follow(organizationId: string, topicName: string): void;
}

/** Is told of messages that go to the lake, and of how many bytes they are. */
export interface LakeFollower {
  follow(organizationId: string, topicName: string, bytes: number): void;
}

/**
 * The one door to the event log. A message is checked, stamped with its routes as they are at this moment,
 * and appended as one record: when that is durable it is accepted for every destination at once.
 */
export class Ingest {
  readonly #topics: Topics;
  readonly #stores: StoreFollower;
  readonly #lake: LakeFollower;
  readonly #log: EventLog;
  readonly #clock: Clock;
  readonly #limits: Limits;
  readonly #nextId: () => string;

  constructor(parts: {
    topics: Topics;
    log: EventLog;
    stores: StoreFollower;
    lake: LakeFollower;
    clock: Clock;
    random: Random;
    limits: Limits;
  }) {
    this.#topics = parts.topics;
    this.#stores = parts.stores;
    this.#lake = parts.lake;
    this.#log = parts.log;
    this.#clock = parts.clock;
    this.#limits = parts.limits;
    this.#nextId = messageIds(parts.random);
  }

  /** Goes on at once as long as there is nothing to wait for, since every wait costs each of many messages. */
  publish(publication: Publication, given: GivenNames): Promise<Published | Problem> {
    const topic = this.#topics.resolve(publication.organizationId, publication.topicName);
    if (topic instanceof Promise) return topic.then((found) => this.#publishTo(found, publication, given));
    return this.#publishTo(topic, publication, given);
  }

  #publishTo(
    topic: ResolvedTopic | undefined,
    publication: Publication,
    given: GivenNames,
  ): Promise<Published | Problem> {
    if (topic === undefined) return Promise.resolve(noSuchTopic(publication.topicName));
    const mediaType = mediaTypeOf(publication.mediaType);
    if (holdsObjects(topic)) {
      if (!jsonTypes.has(mediaType)) return Promise.resolve(notJson(mediaType));
      if (!isUtf8(publication.mediaType)) return Promise.resolve(notUtf8(publication.mediaType));
    }
    const sent = decompress(publication, this.#limits.messageBytes);
    if (!(sent instanceof Promise)) return this.#append(topic, mediaType, publication, given, sent);
    return sent.then((body) => this.#append(topic, mediaType, publication, given, body));
  }

  #append(
    topic: ResolvedTopic,
    mediaType: string,
    publication: Publication,
    given: GivenNames,
    sent: Uint8Array | Problem,
  ): Promise<Published | Problem> {
    if (sent instanceof Problem) return Promise.resolve(sent);
    const objects = holdsObjects(topic);
    const body = objects ? withoutByteOrderMark(sent) : sent;
    const refusal = objects ? refuseUnlessObject(body) : undefined;
    if (refusal !== undefined) return Promise.resolve(refusal);
    const { organizationId, topicName } = publication;
    if (topic.routes.store) this.#stores.follow(organizationId, topicName);
    if (topic.routes.lake) this.#lake.follow(organizationId, topicName, body.length);
    const messageId = given.messageId ?? this.#nextId();
    const entry: AppendEntry = {
      organizationId,
      topicName,
      partition: partitionOf(given.messageKey),
      key: given.messageKey,
      id: messageId,
      deduplicate: given.messageId !== undefined,
      acceptedAt: this.#clock.now(),
      mediaType: objects ? 'application/json' : mediaType,
      routes: topic.routes,
      body,
    };
    return this.#log
      .append([entry])
      .then(([outcome]) => ({ messageId, duplicate: outcome?.duplicate ?? false }));
  }

  async publishMany(
    publication: Publication,
    paths: { readonly messageKeyPath?: string | undefined; readonly messageIdPath?: string | undefined },
  ): Promise<BatchOutcome | Problem> {
    const topic = await this.#topics.resolve(publication.organizationId, publication.topicName);
    if (topic === undefined) return noSuchTopic(publication.topicName);
    const sent = await decompress(publication, this.#limits.batchBytes);
    if (sent instanceof Problem) return sent;
    const body = withoutByteOrderMark(sent);
    // Where there is nothing to read its type says nothing: it is a batch of no lines.
    const isLines = body.length === 0 || mediaTypeOf(publication.mediaType) === 'application/x-ndjson';
    const documents = isLines ? splitLines(body) : splitArray(body);
    if (documents === undefined) return notAnArray();
    if (documents.length > this.#limits.batchMessages) {
      const detail = `A batch may have ${this.#limits.batchMessages} messages, and this one has ${documents.length}.`;
      return problem('BODY_TOO_LARGE', detail);
    }
    const { organizationId, topicName } = publication;
    if (topic.routes.store) this.#stores.follow(organizationId, topicName);
    if (topic.routes.lake) this.#lake.follow(organizationId, topicName, body.length);
    const { entries, errors } = this.#read(publication, topic, documents, paths);
    // A line that is no JSON is one bad message; an array with such an element is no JSON at all.
    if (!isLines && errors.some((error) => error.code === 'MALFORMED_JSON')) return notAnArray();
    const outcomes = entries.length === 0 ? [] : await this.#log.append(entries);
    const duplicates = outcomes.filter((outcome) => outcome.duplicate).length;
    return {
      accepted: outcomes.length - duplicates,
      duplicates,
      rejected: errors.length,
      errors,
    };
  }

  /** Reads each message of a batch; those that cannot be accepted are told apart by their place. */
  #read(
    publication: Publication,
    topic: ResolvedTopic,
    documents: readonly Uint8Array[],
    paths: { readonly messageKeyPath?: string | undefined; readonly messageIdPath?: string | undefined },
  ): { entries: AppendEntry[]; errors: BatchErrors[] } {
    const entries: AppendEntry[] = [];
    const errors: BatchErrors[] = [];
    const keyOf = paths.messageKeyPath === undefined ? undefined : pointerReader(paths.messageKeyPath);
    const idOf = paths.messageIdPath === undefined ? undefined : pointerReader(paths.messageIdPath);
    const acceptedAt = this.#clock.now();
    const objects = holdsObjects(topic);
    for (const [index, body] of documents.entries()) {
      const refuse = (code: string, message: string) => errors.push({ index, code, message });
      const parsed = parse(body);
      if (parsed === undefined) {
        refuse('MALFORMED_JSON', 'is not JSON');
        continue;
      }
      if (body.length > this.#limits.messageBytes) {
        refuse('BODY_TOO_LARGE', `is larger than the limit of ${this.#limits.messageBytes} bytes`);
        continue;
      }
      if (objects && !isObject(parsed.value)) {
        refuse('BODY_NOT_OBJECT', 'is not a JSON object');
        continue;
      }
      const id = idOf === undefined ? this.#nextId() : textAt(idOf, parsed);
      // Without a key of their own messages have no order, and spread over all partitions.
      const key = keyOf === undefined ? id : textAt(keyOf, parsed);
      if (id === undefined) refuse('VALIDATION_FAILED', `has no id at ${paths.messageIdPath}`);
      else if (key === undefined) refuse('VALIDATION_FAILED', `has no key at ${paths.messageKeyPath}`);
      else {
        entries.push({
          ...this.#addressOf(publication, key),
          id,
          deduplicate: idOf !== undefined,
          acceptedAt,
          mediaType: 'application/json',
          routes: topic.routes,
          body,
        });
      }
    }
    return { entries, errors };
  }

  #addressOf(publication: Publication, key: string) {
    return {
      organizationId: publication.organizationId,
      topicName: publication.topicName,
      partition: partitionOf(key),
      key,
    };
  }
}

/** Ids that are unique over restarts and nodes and cost next to nothing to make. */
function messageIds(random: Random): () => string {
  const start = randomBase62(random, 16);
  let count = 0;
  return () => {
    count += 1;
    return `${start}${count.toString(36).padStart(6, '0')}`;
  };
}

function holdsObjects(topic: ResolvedTopic): boolean {
  return topic.routes.lake || topic.routes.store;
}

function mediaTypeOf(header: string | undefined): string {
  return header?.split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

function noSuchTopic(topicName: string): Problem {
  return problem(
    'TOPIC_NOT_FOUND',
    `There is no topic named ${topicName}, and undefined topics are not allowed.`,
  );
}

function notJson(mediaType: string): Problem {
  const detail = `This topic takes JSON objects: send application/json instead of ${mediaType.slice(0, 100)}.`;
  return problem('MEDIA_TYPE_NOT_SUPPORTED', detail);
}

function notUtf8(contentType: string | undefined): Problem {
  const detail = `This topic takes JSON in UTF-8, and the content type is ${contentType?.slice(0, 100)}.`;
  return problem('MEDIA_TYPE_NOT_SUPPORTED', detail);
}

function notAnArray(): Problem {
  return problem('MALFORMED_JSON', 'The body must be one JSON array of messages.');
}

interface Parsed {
  readonly text: string;
  readonly value: unknown;
}

function parse(body: Uint8Array): Parsed | undefined {
  try {
    const text = decoder.decode(body);
    return { text, value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

function refuseUnlessObject(body: Uint8Array): Problem | undefined {
  const parsed = parse(body);
  if (parsed === undefined) return problem('MALFORMED_JSON');
  return isObject(parsed.value) ? undefined : problem('BODY_NOT_OBJECT');
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A key or id in a message: text, or a number or boolean as text. */
function textAt(reader: PointerReader, document: Parsed): string | undefined {
  const value = reader(document.value);
  if (typeof value === 'boolean' || Number.isSafeInteger(value)) return String(value);
  const text = typeof value === 'number' ? reader(withNumbersAsWritten(document.text)) : value;
  return typeof text === 'string' && isKey(text) ? text : undefined;
}

/** JavaScript has one number for several long ones, and messages that it takes for one would be lost. */
function withNumbersAsWritten(text: string): unknown {
  const asWritten = (_name: string, value: unknown, context?: { readonly source?: string }) =>
    typeof value === 'number' ? context?.source : value;
  try {
    return JSON.parse(text, asWritten);
  } catch {
    // Unlike plain reading, this one goes only so deep.
    return undefined;
  }
}

/** Held to what the contract says of a key in a query. Half a surrogate pair cannot be kept as it is. */
function isKey(text: string): boolean {
  if (text === '' || text.includes('\0') || !text.isWellFormed()) return false;
  return text.length <= keyLength || (text.length <= 2 * keyLength && [...text].length <= keyLength);
}

/** Unpacks a body that was sent zipped, never beyond its limit. */
function decompress(
  publication: Publication,
  limit: number,
): Uint8Array | Problem | Promise<Uint8Array | Problem> {
  const { body, encoding } = publication;
  if (encoding === undefined || encoding === 'identity') return body;
  if (encoding.toLowerCase() !== 'gzip') {
    return problem('MEDIA_TYPE_NOT_SUPPORTED', 'The only content encoding that is understood is gzip.');
  }
  return new Promise((resolve) => {
    gunzip(body, { maxOutputLength: limit }, (error, unzipped) => {
      if (error === null) resolve(unzipped);
      else if ('code' in error && error.code === 'ERR_BUFFER_TOO_LARGE') {
        resolve(problem('BODY_TOO_LARGE', `The unzipped body is larger than the limit of ${limit} bytes.`));
      } else resolve(problem('MALFORMED_REQUEST', 'The body is not what its content encoding says.'));
    });
  });
}
