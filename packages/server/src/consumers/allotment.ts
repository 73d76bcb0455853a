import type { Database } from '../database/database.ts';
import type { EventLog, PartitionAddress } from '../events/events.ts';
import type { Clock } from '../platform/clock.ts';
import type { Log } from '../platform/log.ts';
import { assignPartitions } from './assignment.ts';
import { listSharesWithRedriven } from './dead-letter-store.ts';
import type { Membership } from './membership.ts';
import { databaseTime } from './node-store.ts';
import type { KnownPartitions } from './partitions.ts';
import { listCursors, noteConsumer, shareId, takeShares, type WantedShare } from './share-store.ts';
import type { ShareWork } from './share-work.ts';

export interface AllotmentOptions {
  readonly work: ShareWork;
  readonly membership: Membership;
  readonly partitions: KnownPartitions;
  readonly database: Database;
  readonly events: EventLog;
  readonly clock: Clock;
  readonly log: Log;
  readonly nodeId: string;
  /** How long to wait before asking again for what another node still holds. */
  readonly againMilliseconds: number;
}

/**
 * Sees to it that this node holds those shares of one consumer that are its part: gives up what is
 * another's and takes what is its own and free. A share that another live node still holds is asked for
 * again when that node says it let go, or after a while.
 */
export class Allotment {
  readonly #options: AllotmentOptions;
  readonly #topics = new Set<string>();
  /** Topics that something was just appended to; somebody may wait for that. They go before the others. */
  readonly #urgent = new Set<string>();
  readonly #pending = new Set<string>();
  /** Topics that were wanted when they were last looked at. */
  readonly #wanted = new Set<string>();
  #createdAt: number | undefined;
  #hasSettled = false;
  #closed = false;
  #running: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: AllotmentOptions) {
    this.#options = options;
  }

  get isBusy(): boolean {
    return this.#running !== undefined;
  }

  /** Whether this node holds all that is its part, as far as it knows. */
  get isSettled(): boolean {
    return (
      this.#hasSettled && !this.isBusy && this.#topics.size + this.#urgent.size + this.#pending.size === 0
    );
  }

  /** Looks at one topic soon, or at all of them. */
  settle(topicName?: string): void {
    const { partitions, work } = this.#options;
    if (topicName !== undefined) this.#urgent.add(topicName);
    else {
      const all = partitions.topics(work.consumer.organizationId);
      for (const name of all) this.#topics.add(name);
      if (all.length === 0) this.#hasSettled = true;
    }
    this.#start();
  }

  /** Something was appended to a partition that is not held here. */
  hear(topicName: string, isNew: boolean): void {
    if (!isNew && this.#wanted.has(topicName)) return;
    if (this.#options.work.consumer.wants(topicName)) this.settle(topicName);
  }

  /** Asks again for what was held by others. */
  settlePending(): void {
    for (const topicName of this.#pending) this.#topics.add(topicName);
    this.#pending.clear();
    this.#start();
  }

  /** Has a look whether dead letters of the shares held here are to be handled again. */
  async checkRedriven(): Promise<void> {
    const { database, work } = this.#options;
    if (work.redrive === undefined) return;
    for (const { topicName, partition } of await listSharesWithRedriven(database.query, work.consumer.id)) {
      work.redrive(topicName, partition);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#running;
  }

  #start(): void {
    if (this.#closed || this.#topics.size + this.#urgent.size === 0) return;
    this.#running ??= this.#settleAll().finally(() => {
      this.#running = undefined;
      this.#start();
    });
  }

  async #settleAll(): Promise<void> {
    let took = false;
    for (let topicName = this.#next(); topicName !== undefined; topicName = this.#next()) {
      if (this.#closed || !this.#options.membership.isValid()) continue;
      try {
        took = (await this.#settleTopic(topicName)) || took;
      } catch (error) {
        this.#warn(error);
        this.#askAgain(topicName);
      }
    }
    this.#hasSettled ||= this.#options.membership.isValid();
    if (took) await this.checkRedriven().catch((error: unknown) => this.#warn(error));
  }

  #next(): string | undefined {
    const [topicName] = this.#urgent.size > 0 ? this.#urgent : this.#topics;
    if (topicName === undefined) return undefined;
    this.#urgent.delete(topicName);
    this.#topics.delete(topicName);
    return topicName;
  }

  /** True when it took something. */
  async #settleTopic(topicName: string): Promise<boolean> {
    const { work, membership, partitions, nodeId } = this.#options;
    const { id: consumerId, organizationId } = work.consumer;
    const wanted = work.consumer.wants(topicName);
    if (wanted) this.#wanted.add(topicName);
    else this.#wanted.delete(topicName);
    const owners = assignPartitions(consumerId, topicName, membership.nodesOf(consumerId));
    const missing: number[] = [];
    for (const partition of partitions.of(organizationId, topicName)) {
      const id = shareId({ topicName, partition });
      const held = work.shares.get(id);
      const mine = wanted && owners[partition] === nodeId;
      // A call of ours that does not end although it was aborted would have the same keys.
      if (mine && held === undefined && !work.hasLeftover(id)) missing.push(partition);
      else if (!mine && held !== undefined) work.leave(id);
    }
    if (missing.length === 0) return false;
    const taken = await this.#take(topicName, missing);
    if (taken.length < missing.length) this.#askAgain(topicName);
    await work.hold(topicName, taken);
    return taken.length > 0;
  }

  async #take(topicName: string, partitions: readonly number[]) {
    const { work, membership, database, clock } = this.#options;
    const { id, organizationId } = work.consumer;
    this.#createdAt ??= await noteConsumer(database, { id, organizationId, now: clock.now() });
    const known = await listCursors(database.query, id, topicName);
    const wanted: WantedShare[] = [];
    for (const partition of partitions) {
      const address = { organizationId, topicName, partition };
      wanted.push({ ...address, start: known.has(partition) ? 0 : await this.#startOf(address) });
    }
    if (this.#closed || !membership.isValid()) return [];
    return takeShares(database, id, wanted, membership.incarnation, () => databaseTime(database, clock));
  }

  /** Nothing before the first record is skipped; of a consumer that begins at the end, what is older is. */
  async #startOf(address: PartitionAddress): Promise<number> {
    if (this.#options.work.consumer.startAt !== 'end' || this.#createdAt === undefined) return 0;
    return await this.#options.events.offsetAt(address, this.#createdAt - 1);
  }

  #askAgain(topicName: string): void {
    this.#pending.add(topicName);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.settlePending(), this.#options.againMilliseconds).unref();
  }

  #warn(error: unknown): void {
    const consumer = this.#options.work.consumer.id;
    this.#options.log.warn(
      { event: 'consumers.settle-failed', consumer, error },
      'shares could not be settled',
    );
  }
}
