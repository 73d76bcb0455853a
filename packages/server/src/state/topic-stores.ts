import type { Consumer, Delivery, Failure, Registration } from '../consumers/consumer.ts';
import type { EventLog, EventRecord } from '../events/events.ts';
import type { Log } from '../platform/log.ts';
import { Problem } from '../platform/problem.ts';
import type { Topics } from '../topics/topics.ts';
import { type ProjectedEntry, project } from './projection.ts';
import type { State } from './state.ts';

export interface TopicStoreParts {
  readonly topics: Topics;
  readonly state: State;
  readonly log: EventLog;
  readonly reporter: Log;
  /** Gives a consumer to the runner. */
  readonly register: (consumer: Consumer) => Registration;
}

const decoder = new TextDecoder('utf-8', { fatal: true });

/**
 * The keyed stores of topics. Each organization that has one has a consumer, which turns messages into
 * state entries. They are written in the transaction that moves the cursor, so each message counts once.
 */
export class TopicStores {
  readonly #parts: TopicStoreParts;
  /** What was made of records that are in hand, so that what was checked is what is written. */
  readonly #projected = new WeakMap<EventRecord, ProjectedEntry[]>();
  readonly #stores = new Map<string, { wanted: Set<string>; registration: Registration }>();

  constructor(parts: TopicStoreParts) {
    this.#parts = parts;
  }

  /** Takes up what was published before the process started. */
  async start(): Promise<void> {
    for (const { organizationId, topicName } of await this.#parts.log.topics()) {
      const topic = await this.#parts.topics.resolve(organizationId, topicName);
      if (topic?.routes.store === true) this.follow(organizationId, topicName);
    }
  }

  /** Sees to it that the messages of a topic reach its store; costs nothing when they do already. */
  follow(organizationId: string, topicName: string): void {
    const store = this.#stores.get(organizationId);
    if (store !== undefined) {
      store.wanted.add(topicName);
      return;
    }
    const wanted = new Set([topicName]);
    const registration = this.#parts.register(this.#consumer(organizationId, wanted));
    this.#stores.set(organizationId, { wanted, registration });
  }

  #consumer(organizationId: string, wanted: ReadonlySet<string>): Consumer {
    return {
      id: `store/${organizationId}`,
      organizationId,
      wants: (topicName) => wanted.has(topicName),
      selects: (record) => record.routes.store,
      batchSize: 500,
      concurrency: 4,
      maxAttempts: 20,
      retry: { firstMilliseconds: 100, mostMilliseconds: 30_000 },
      handle: async (batch) => {
        const failures: Failure[] = [];
        for (const [index, delivery] of batch.entries()) {
          const entries = await this.#project(delivery);
          if (typeof entries === 'string') {
            const { organizationId, topicName, partition } = delivery.address;
            const { offset } = delivery.record;
            this.#parts.reporter.warn(
              { event: 'store.refused', organizationId, topicName, partition, offset, reason: entries },
              'a message cannot be stored and is kept as a dead letter',
            );
            failures.push({ index, error: entries, final: true });
          } else this.#projected.set(delivery.record, entries);
        }
        return failures;
      },
      commit: async (transaction, batch) => {
        const entries: ProjectedEntry[] = [];
        for (const delivery of batch) {
          const projected = this.#projected.get(delivery.record) ?? (await this.#project(delivery));
          if (typeof projected === 'string') throw new Error(projected);
          entries.push(...projected);
        }
        await this.#parts.state.writeWithin(transaction, organizationId, entries);
      },
    };
  }

  /** The entries of a message, or why it can have none. */
  async #project({ address, record }: Delivery): Promise<ProjectedEntry[] | string> {
    const topic = await this.#parts.topics.resolve(address.organizationId, address.topicName);
    const store = topic?.definition.store;
    // The store was taken away since: there is nowhere to put the message.
    if (store === undefined) return [];
    const message: unknown = JSON.parse(decoder.decode(record.body));
    if (typeof message !== 'object' || message === null || Array.isArray(message))
      return 'is not a JSON object';
    const entries = project(address.topicName, store, { ...message });
    if ('missing' in entries) return `lacks the key field ${entries.missing}`;
    for (const entry of entries) {
      const refused = this.#parts.state.check(address.organizationId, entry);
      if (refused instanceof Problem) return refused.detail;
    }
    return entries;
  }
}
