import type { RangeConsumer, RangeRegistration } from '../consumers/ranges.ts';
import type { TopicAddress } from '../events/events.ts';
import type { Log } from '../platform/log.ts';
import { ConversionError, type TopicWrite, type WriteLimits } from './topic-write.ts';

export interface WriterParts {
  /** Writes some of what a topic has pending. */
  readonly write: TopicWrite;
  readonly register: (consumer: RangeConsumer) => RangeRegistration;
  readonly log: Log;
  readonly fileBytes: number;
  readonly fileMilliseconds: number;
}

/** A topic whose messages are written to the lake. */
interface FollowedTopic extends TopicAddress {
  /** Bytes that were published on this node since the last file was begun. */
  pendingBytes: number;
  /** Runs until a file is due; undefined while nothing is known to be pending. */
  timer: NodeJS.Timeout | undefined;
  isQueued: boolean;
  /** How many wait for it on this node. */
  waiting: number;
  /** Until when somebody may wait for it on another node, by a clock that does not jump. */
  awaitedUntil: number;
  /** There may be a backlog from before the start, which has waited long enough. */
  isNew: boolean;
  failures: number;
  /** How often a message has failed all by itself. */
  failuresAlone: number;
  /** How often it went well since something failed. */
  successes: number;
  /** Lower than usual while the messages are looked for that bring the converter down. */
  recordLimit: number;
}

interface FollowedOrganization {
  readonly registration: RangeRegistration;
  readonly topics: Map<string, FollowedTopic>;
}

const firstRetryMilliseconds = 1_000;
const lastRetryMilliseconds = 60_000;
const searchMilliseconds = 200;
/** Shares that go to another node do so within moments. */
const movedMilliseconds = 50;
/** Failures of the converter on the same range after which the range is halved. */
const failuresBeforeHalving = 2;
/** More records than a file of many small messages has. */
const usualRecordLimit = 2_000_000;
/** For the write under way to end by itself when the service closes. */
const closeMilliseconds = 3_000;
/** For somebody on another node to get what he waits for. */
const awaitedMilliseconds = 10_000;

/**
 * Decides when a topic is written: when a file's worth of bytes is pending, when the first pending message
 * has waited long enough, or when a query asks. One topic is written at a time on a node, each in its turn.
 *
 *   idle ── noticed ──> waiting ── bytes, time or a query ──> queued ──> being written ──> idle
 *                                                               ^  more is left, or failed: later │
 *                                                               └────────────────────────────────┘
 */
export class LakeWriter {
  readonly #parts: WriterParts;
  readonly #organizations = new Map<string, FollowedOrganization>();
  readonly #queue: FollowedTopic[] = [];
  readonly #stopped = new AbortController();
  #working: Promise<void> | undefined;
  #closing = false;

  constructor(parts: WriterParts) {
    this.#parts = parts;
  }

  /** Notes that something was published. Costs two look-ups when the topic is known. */
  follow(organizationId: string, topicName: string, bytes: number): void {
    const topic =
      this.#organizations.get(organizationId)?.topics.get(topicName) ?? this.#add(organizationId, topicName);
    topic.pendingBytes += bytes;
    if (topic.pendingBytes >= this.#parts.fileBytes) this.#enqueue(topic);
  }

  registration(organizationId: string): RangeRegistration | undefined {
    return this.#organizations.get(organizationId)?.registration;
  }

  isFollowed({ organizationId, topicName }: TopicAddress): boolean {
    return this.#find({ organizationId, topicName }) !== undefined;
  }

  /**
   * Writes what a topic has pending before anything that nobody waits for, and what comes to this node or is
   * noticed by it until the returned function is called.
   */
  hurry(address: TopicAddress): () => void {
    const topic = this.#find(address);
    if (topic === undefined) return () => {};
    topic.waiting += 1;
    this.#enqueue(topic);
    return () => {
      topic.waiting -= 1;
    };
  }

  /** The same for somebody on another node, who cannot say when it is over. */
  hurryAWhile(address: TopicAddress): void {
    const topic = this.#find(address);
    if (topic === undefined) return;
    topic.awaitedUntil = performance.now() + awaitedMilliseconds;
    this.#enqueue(topic);
  }

  /** Begins nothing more. What is under way is given up if it does not end soon; nothing is lost by that. */
  async close(): Promise<void> {
    this.#queue.length = 0;
    for (const { topics } of this.#organizations.values()) {
      for (const topic of topics.values()) clearTimeout(topic.timer);
    }
    const timer = setTimeout(() => this.#stopped.abort(), closeMilliseconds);
    this.#closing = true;
    await this.#working;
    clearTimeout(timer);
    this.#stopped.abort();
  }

  #add(organizationId: string, topicName: string): FollowedTopic {
    let organization = this.#organizations.get(organizationId);
    const isKnown = organization !== undefined;
    if (organization === undefined) {
      const topics = new Map<string, FollowedTopic>();
      const registration = this.#parts.register({
        id: `lake/${organizationId}`,
        organizationId,
        wants: (name) => topics.has(name),
        noticed: (name) => this.#noticed(organizationId, name),
      });
      organization = { registration, topics };
      this.#organizations.set(organizationId, organization);
    }
    const topic: FollowedTopic = {
      organizationId,
      topicName,
      pendingBytes: 0,
      timer: undefined,
      isQueued: false,
      waiting: 0,
      awaitedUntil: 0,
      isNew: true,
      failures: 0,
      failuresAlone: 0,
      successes: 0,
      recordLimit: usualRecordLimit,
    };
    organization.topics.set(topicName, topic);
    if (isKnown) organization.registration.refresh();
    return topic;
  }

  #find({ organizationId, topicName }: TopicAddress): FollowedTopic | undefined {
    return this.#organizations.get(organizationId)?.topics.get(topicName);
  }

  #noticed(organizationId: string, topicName: string): void {
    const topic = this.#find({ organizationId, topicName });
    if (topic === undefined) return;
    if (isUrgent(topic) || (topic.isNew && topic.pendingBytes === 0)) this.#enqueue(topic);
    else this.#later(topic, this.#parts.fileMilliseconds);
    topic.isNew = false;
  }

  #later(topic: FollowedTopic, milliseconds: number): void {
    if (this.#closing || topic.timer !== undefined) return;
    topic.timer = setTimeout(() => {
      topic.timer = undefined;
      this.#enqueue(topic);
    }, milliseconds);
    topic.timer.unref();
  }

  #enqueue(topic: FollowedTopic): void {
    if (this.#closing || topic.isQueued) return;
    topic.isQueued = true;
    this.#queue.push(topic);
    this.#working ??= this.#work().finally(() => {
      this.#working = undefined;
    });
  }

  async #work(): Promise<void> {
    for (;;) {
      const place = this.#queue.findIndex(isUrgent);
      const [topic] = this.#queue.splice(Math.max(place, 0), 1);
      if (topic === undefined) return;
      topic.isQueued = false;
      topic.pendingBytes = 0;
      clearTimeout(topic.timer);
      topic.timer = undefined;
      await this.#writeOne(topic);
    }
  }

  async #writeOne(topic: FollowedTopic): Promise<void> {
    const registration = this.registration(topic.organizationId);
    if (registration === undefined) return;
    try {
      const outcome = await this.#parts.write(
        topic,
        registration,
        this.#limitsOf(topic),
        this.#stopped.signal,
      );
      this.#succeeded(topic);
      if (outcome === 'more') this.#enqueue(topic);
      else if (outcome === 'lost') this.#later(topic, movedMilliseconds);
    } catch (error) {
      if (this.#stopped.signal.aborted) return;
      this.#failed(topic, error);
    }
  }

  #limitsOf(topic: FollowedTopic): WriteLimits {
    return {
      bytes: this.#parts.fileBytes,
      records: topic.recordLimit,
      // Alone, and again and again: it is kept as it came.
      asIs: topic.failuresAlone >= failuresBeforeHalving,
    };
  }

  /**
   * While a message is searched for that brings the converter down, every failure halves the range. What
   * comes after a half that succeeded must have it, so only a second success means that there is none.
   */
  #succeeded(topic: FollowedTopic): void {
    const isFound = topic.failuresAlone >= failuresBeforeHalving;
    topic.failures = 0;
    topic.failuresAlone = 0;
    topic.successes += 1;
    if (isFound) topic.recordLimit = usualRecordLimit;
    else if (topic.successes > 1) topic.recordLimit = Math.min(topic.recordLimit * 4, usualRecordLimit);
  }

  #failed(topic: FollowedTopic, error: unknown): void {
    topic.failures += 1;
    topic.successes = 0;
    const { organizationId, topicName, failures } = topic;
    let delay = Math.min(firstRetryMilliseconds * 2 ** (failures - 1), lastRetryMilliseconds);
    const isSearching = failures >= failuresBeforeHalving || topic.recordLimit < usualRecordLimit;
    if (error instanceof ConversionError && isSearching) {
      if (error.records === 1) topic.failuresAlone += 1;
      topic.recordLimit = Math.max(1, Math.floor(Math.min(error.records, topic.recordLimit) / 2));
      // The search ends soon, and the rest of the topic waits for it.
      if (topic.failuresAlone <= failuresBeforeHalving) delay = searchMilliseconds;
    }
    this.#parts.log.warn(
      { event: 'lake.write-failed', organizationId, topicName, failures, records: topic.recordLimit, error },
      'messages could not be written to the lake and are tried again',
    );
    clearTimeout(topic.timer);
    topic.timer = undefined;
    this.#later(topic, delay);
  }
}

function isUrgent(topic: FollowedTopic): boolean {
  return topic.waiting > 0 || topic.awaitedUntil > performance.now();
}
