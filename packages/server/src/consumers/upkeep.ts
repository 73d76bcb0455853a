import type { Database } from '../database/database.ts';
import type { PartitionAddress } from '../events/events.ts';
import type { Log } from '../platform/log.ts';
import type { KnownPartitions } from './partitions.ts';
import type { Registered, Registrations } from './registrations.ts';
import type { RunnerTimings } from './settings.ts';
import { listHeld, releaseShare, shareId } from './share-store.ts';

export interface UpkeepOptions {
  readonly database: Database;
  readonly log: Log;
  readonly incarnation: string;
  readonly timings: RunnerTimings;
  readonly registrations: Registrations;
  readonly partitions: KnownPartitions;
}

/** Looks from time to time for everything that nobody told of. */
export class Upkeep {
  readonly #options: UpkeepOptions;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(options: UpkeepOptions) {
    this.#options = options;
    this.#later(options.timings.pollMilliseconds);
  }

  /** Looks at what there is for a consumer that was just registered, or wants something else now. */
  async begin({ work, allotment }: Registered): Promise<void> {
    try {
      await this.#refresh(work.consumer.organizationId);
    } catch (error) {
      this.#warn(error);
      this.#later(this.#options.timings.heartbeatMilliseconds);
    }
    allotment.settle();
  }

  /** Looks at one topic, because somebody waits for it. */
  async look({ work, allotment }: Registered, topicName: string): Promise<void> {
    const { organizationId } = work.consumer;
    if (!work.consumer.wants(topicName)) return;
    try {
      const topic = { organizationId, topicName };
      await this.#options.partitions.refreshTopic(topic, (address, last) => work.compare(address, last));
    } catch (error) {
      this.#warn(error);
    }
    allotment.settle(topicName);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#running;
  }

  #later(milliseconds: number): void {
    clearTimeout(this.#timer);
    if (this.#closed) return;
    this.#timer = setTimeout(() => {
      this.#running = this.#run()
        .catch((error: unknown) => this.#warn(error))
        .then(() => this.#later(this.#options.timings.pollMilliseconds));
    }, milliseconds).unref();
  }

  async #run(): Promise<void> {
    const { registrations } = this.#options;
    const organizations = new Set(registrations.works().map(({ consumer }) => consumer.organizationId));
    for (const organizationId of organizations) {
      if (this.#closed) return;
      await this.#refresh(organizationId);
    }
    for (const { allotment } of registrations) allotment.settle();
    await this.#releaseStrays();
    for (const { allotment } of registrations) await allotment.checkRedriven();
  }

  async #refresh(organizationId: string): Promise<void> {
    const { registrations, partitions } = this.#options;
    const works = registrations.works().filter(({ consumer }) => consumer.organizationId === organizationId);
    await partitions.refresh(
      organizationId,
      (topicName) => works.some(({ consumer }) => consumer.wants(topicName)),
      (address: PartitionAddress, last) => {
        for (const work of works) work.compare(address, last);
      },
    );
  }

  /** Gives up what the database says is ours and nobody here knows of, after a take of unknown outcome. */
  async #releaseStrays(): Promise<void> {
    const { registrations, database, incarnation } = this.#options;
    for (const row of await listHeld(database.query, incarnation)) {
      const registered = registrations.get(row.consumer_id);
      const share = { topicName: row.topic_name, partition: row.partition, version: row.version };
      if (registered?.allotment.isBusy || registered?.work.shares.has(shareId(share))) continue;
      if (registrations.isEnding(row.consumer_id)) continue;
      await releaseShare(database.query, row.consumer_id, share);
      registrations.announceReleased(row.consumer_id);
    }
  }

  #warn(error: unknown): void {
    this.#options.log.warn({ event: 'consumers.poll-failed', error }, 'the log could not be asked');
  }
}
