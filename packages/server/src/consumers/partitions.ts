import type { EventLog, PartitionAddress, TopicAddress } from '../events/events.ts';

/** The partitions that have records, or had, of the organizations whose topics somebody here reads. */
export class KnownPartitions {
  readonly #events: EventLog;
  readonly #organizations = new Map<string, Map<string, Set<number>>>();

  constructor(events: EventLog) {
    this.#events = events;
  }

  /** Notes a partition; true when it was not known. */
  add({ organizationId, topicName, partition }: PartitionAddress): boolean {
    const topics = this.#organizations.get(organizationId) ?? new Map<string, Set<number>>();
    this.#organizations.set(organizationId, topics);
    const partitions = topics.get(topicName) ?? new Set();
    topics.set(topicName, partitions);
    if (partitions.has(partition)) return false;
    partitions.add(partition);
    return true;
  }

  topics(organizationId: string): string[] {
    return [...(this.#organizations.get(organizationId)?.keys() ?? [])];
  }

  of(organizationId: string, topicName: string): number[] {
    return [...(this.#organizations.get(organizationId)?.get(topicName) ?? [])];
  }

  forget(organizationId: string): void {
    this.#organizations.delete(organizationId);
  }

  /** Asks the log what there is of the topics that are wanted, and tells how far each partition goes. */
  async refresh(
    organizationId: string,
    wants: (topicName: string) => boolean,
    tell: (address: PartitionAddress, last: number) => void,
  ): Promise<void> {
    for (const topic of await this.#events.topics(organizationId)) {
      if (wants(topic.topicName)) await this.refreshTopic(topic, tell);
    }
  }

  async refreshTopic(
    topic: TopicAddress,
    tell: (address: PartitionAddress, last: number) => void,
  ): Promise<void> {
    for (const { partition, last } of await this.#events.bounds(topic)) {
      const address = { ...topic, partition };
      this.add(address);
      tell(address, last);
    }
  }
}
