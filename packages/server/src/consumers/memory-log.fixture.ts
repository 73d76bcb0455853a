import type {
  AppendEntry,
  AppendOutcome,
  EventLog,
  EventRecord,
  PartitionAddress,
  ReadLimits,
  TopicAddress,
} from '../events/events.ts';

interface Partition {
  readonly address: PartitionAddress;
  records: EventRecord[];
  trimmedThrough: number;
  last: number;
}

/** An event log in memory, for tests that close and open what reads it. Offsets have gaps, as they may. */
export class MemoryLog implements EventLog {
  readonly #partitions = new Map<string, Partition>();
  readonly #seen = new Set<string>();
  readonly #listeners = new Set<(address: PartitionAddress) => void>();
  readonly #gap: number;

  constructor({ gap = 1 }: { gap?: number } = {}) {
    this.#gap = gap;
  }

  async append(entries: readonly AppendEntry[]): Promise<AppendOutcome[]> {
    const touched = new Map<string, PartitionAddress>();
    const outcomes = entries.map((entry): AppendOutcome => {
      const topic = `${entry.organizationId}/${entry.topicName}`;
      const seen = `${topic}/${entry.id}`;
      if (entry.deduplicate && this.#seen.has(seen)) return { duplicate: true };
      this.#seen.add(seen);
      const partition = this.#partition(entry);
      const offset = partition.last + this.#gap;
      const { key, id, acceptedAt, mediaType, routes, body } = entry;
      partition.records.push({ offset, key, id, acceptedAt, mediaType, routes, body });
      partition.last = offset;
      touched.set(nameOf(entry), partition.address);
      return { duplicate: false, offset };
    });
    await Promise.resolve();
    for (const address of touched.values()) for (const hear of this.#listeners) hear(address);
    return outcomes;
  }

  async read(address: PartitionAddress, after: number, limits: ReadLimits): Promise<EventRecord[]> {
    const records = this.#partitions.get(nameOf(address))?.records ?? [];
    const found: EventRecord[] = [];
    let bytes = 0;
    for (let index = firstAfter(records, after); index < records.length; index += 1) {
      const record = records[index];
      if (record === undefined || found.length >= limits.records || bytes >= limits.bytes) break;
      found.push(record);
      bytes += record.body.byteLength;
    }
    return found;
  }

  async bounds({ organizationId, topicName }: TopicAddress) {
    return [...this.#partitions.values()]
      .filter(({ address }) => address.organizationId === organizationId && address.topicName === topicName)
      .map(({ address, trimmedThrough, last }) => ({ partition: address.partition, trimmedThrough, last }));
  }

  async topics(organizationId?: string): Promise<TopicAddress[]> {
    const topics = new Map<string, TopicAddress>();
    for (const { address } of this.#partitions.values()) {
      if (organizationId !== undefined && address.organizationId !== organizationId) continue;
      const { organizationId: organization, topicName } = address;
      topics.set(`${organization}/${topicName}`, { organizationId: organization, topicName });
    }
    return [...topics.values()];
  }

  async trim(address: PartitionAddress, through: number): Promise<void> {
    const partition = this.#partitions.get(nameOf(address));
    if (partition === undefined || through <= partition.trimmedThrough) return;
    partition.records = partition.records.filter((record) => record.offset > through);
    partition.trimmedThrough = Math.min(through, partition.last);
  }

  async offsetAt(address: PartitionAddress, acceptedAt: number): Promise<number> {
    const records = this.#partitions.get(nameOf(address))?.records ?? [];
    let offset = 0;
    for (const record of records) {
      if (record.acceptedAt > acceptedAt) break;
      offset = record.offset;
    }
    return offset;
  }

  listen(hear: (address: PartitionAddress) => void): () => void {
    this.#listeners.add(hear);
    return () => this.#listeners.delete(hear);
  }

  async check(): Promise<void> {}
  async close(): Promise<void> {}

  #partition({ organizationId, topicName, partition }: PartitionAddress): Partition {
    const address = { organizationId, topicName, partition };
    const name = nameOf(address);
    let found = this.#partitions.get(name);
    if (found === undefined) {
      found = { address, records: [], trimmedThrough: 0, last: 0 };
      this.#partitions.set(name, found);
    }
    return found;
  }
}

function nameOf({ organizationId, topicName, partition }: PartitionAddress): string {
  return `${organizationId}/${topicName}/${partition}`;
}

function firstAfter(records: readonly EventRecord[], offset: number): number {
  let low = 0;
  let high = records.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((records[middle]?.offset ?? 0) > offset) high = middle;
    else low = middle + 1;
  }
  return low;
}
