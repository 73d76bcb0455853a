import { type PartitionAddress, partitionCount } from '../events.ts';

/** Tells listeners which partitions were appended to, each once for all that became durable together. */
export class Notices {
  readonly #listeners = new Set<{ hear(address: PartitionAddress): void }>();
  #appendedTo = new Map<string, Map<string, number>>();

  listen(hear: (address: PartitionAddress) => void): () => void {
    const listener = { hear };
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Takes organization ids and topic names by turns, and for each topic a bit for each partition. */
  add(topics: readonly string[], partitions: readonly number[]): void {
    if (this.#listeners.size === 0) return;
    if (this.#appendedTo.size === 0) setImmediate(() => this.#deliver());
    partitions.forEach((bits, index) => {
      if (bits === 0) return;
      const organizationId = topics[2 * index] ?? '';
      const topicName = topics[2 * index + 1] ?? '';
      const names = this.#appendedTo.get(organizationId) ?? new Map<string, number>();
      this.#appendedTo.set(organizationId, names.set(topicName, (names.get(topicName) ?? 0) | bits));
    });
  }

  /** Every listener is told everything, also after one that throws; then the first fault is thrown. */
  #deliver(): void {
    const appendedTo = this.#appendedTo;
    this.#appendedTo = new Map();
    const faults: unknown[] = [];
    for (const address of addressesIn(appendedTo)) {
      for (const listener of this.#listeners) {
        try {
          listener.hear(address);
        } catch (fault) {
          faults.push(fault);
        }
      }
    }
    if (faults.length > 0) throw faults[0];
  }
}

function* addressesIn(appendedTo: Map<string, Map<string, number>>): Iterable<PartitionAddress> {
  for (const [organizationId, topics] of appendedTo) {
    for (const [topicName, bits] of topics) {
      for (let partition = 0; partition < partitionCount; partition += 1) {
        if ((bits & (1 << partition)) !== 0) yield { organizationId, topicName, partition };
      }
    }
  }
}
