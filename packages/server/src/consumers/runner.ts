import type { PartitionAddress } from '../events/events.ts';
import { Allotment } from './allotment.ts';
import type { Consumer, Registration } from './consumer.ts';
import { DeadLetters } from './dead-letters.ts';
import { type ConsumerFigures, Counters } from './figures.ts';
import { Membership } from './membership.ts';
import { Memory } from './memory.ts';
import { KnownPartitions } from './partitions.ts';
import { RangeWork } from './range-work.ts';
import type { RangeConsumer, RangeRegistration } from './ranges.ts';
import { type Registered, Registrations } from './registrations.ts';
import {
  defaultLimits,
  defaultTimings,
  type RunnerLimits,
  type RunnerOptions,
  type RunnerTimings,
} from './settings.ts';
import { deleteConsumer } from './share-store.ts';
import type { ShareWork, WorkedShare } from './share-work.ts';
import { consumerStatus, kindFigures } from './status.ts';
import { trimTopics } from './trim.ts';
import { Upkeep } from './upkeep.ts';
import { ConsumerWork } from './work.ts';

const awaitedChannel = 'consumers.awaited';

/** Runs consumers on this node, sharing the work with all other nodes on the same database. See README.md. */
export class ConsumerRunner {
  readonly deadLetters: DeadLetters;
  readonly figures: ConsumerFigures;
  readonly #options: RunnerOptions;
  readonly #timings: RunnerTimings;
  readonly #limits: RunnerLimits;
  readonly #membership: Membership;
  readonly #partitions: KnownPartitions;
  readonly #registrations: Registrations;
  readonly #upkeep: Upkeep;
  readonly #memory: Memory;
  readonly #counters = new Counters();
  readonly #endListening: (() => void)[];
  #closed: Promise<void> | undefined;

  constructor(options: RunnerOptions) {
    this.#options = options;
    this.#timings = { ...defaultTimings, ...options.timings };
    this.#limits = { ...defaultLimits, ...options.limits };
    this.#memory = new Memory(this.#limits.memoryBytes);
    this.#partitions = new KnownPartitions(options.events);
    this.deadLetters = new DeadLetters(options.database);
    this.#registrations = new Registrations({
      ...options,
      drainMilliseconds: this.#timings.drainMilliseconds,
      onChange: (consumerIds) => {
        if (this.#closed === undefined) this.#membership.setConsumers(consumerIds);
      },
    });
    this.figures = {
      read: () => kindFigures(this.#registrations, this.#counters, options),
    };
    this.#membership = new Membership({
      ...options,
      monotonic: options.monotonic ?? (() => performance.now()),
      timings: this.#timings,
      onChange: () => {
        for (const { allotment } of this.#registrations) allotment.settle();
      },
      onLost: () => {
        for (const { work } of this.#registrations) work.loseAll();
      },
    });
    this.#upkeep = new Upkeep({
      ...options,
      timings: this.#timings,
      incarnation: this.#membership.incarnation,
      registrations: this.#registrations,
      partitions: this.#partitions,
    });
    this.#endListening = this.#listen();
    this.#membership.beat();
  }

  /** Begins to run a consumer. One with the same id must have been removed before. */
  register(consumer: Consumer): Registration {
    const work = new ConsumerWork({
      ...this.#options,
      ...this.#shareOptions(consumer.id),
      consumer,
      memory: this.#memory,
      mostParkedKeys: this.#limits.parkedKeys,
    });
    const registered = this.#add(work);
    return {
      pause: () => work.pause(),
      resume: () => work.resume(),
      refresh: () => void this.#upkeep.begin(registered),
      remove: () => this.#registrations.remove(registered),
      status: () => consumerStatus(work, this.#options),
    };
  }

  /** Begins to hold shares for a range consumer. One with the same id must have been removed before. */
  registerRanges(consumer: RangeConsumer): RangeRegistration {
    const work = new RangeWork({
      ...this.#options,
      ...this.#shareOptions(consumer.id),
      consumer,
      drainMilliseconds: this.#timings.drainMilliseconds,
      onAwaited: (topicName) => this.#announceAwaited(consumer.id, topicName),
    });
    const registered = this.#add(work);
    return {
      held: (topicName) => work.held(topicName),
      topics: () => work.topics(),
      advance: (moves, changes) => work.advance(moves, changes),
      reached: (topicName, targets, signal) => work.reached(topicName, targets, signal),
      refresh: () => void this.#upkeep.begin(registered),
      remove: () => this.#registrations.remove(registered),
      status: () => consumerStatus(work, this.#options),
    };
  }

  /** Deletes the cursors, parked records and dead letters of a consumer that no node runs any more. */
  async forget(organizationId: string, consumerId: string): Promise<void> {
    await this.#registrations.ended(consumerId);
    await deleteConsumer(this.#options.database, organizationId, consumerId);
  }

  /** Lets go of what is old and every consumer has passed. To be called from time to time, on every node. */
  async trimLog(): Promise<void> {
    const { clock, nodeId } = this.#options;
    await trimTopics({
      ...this.#options,
      acceptedBefore: clock.now() - this.#timings.retentionMilliseconds,
      works: () => this.#registrations.works(),
      nodeId,
      nodes: () => {
        const mayTrim = this.#membership.isValid() && this.#closed === undefined;
        return mayTrim ? this.#membership.nodes() : undefined;
      },
    });
  }

  /** Ends what is in hand within the bound, and leaves, so that other nodes take over at once. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    const { database, log, nodeId } = this.#options;
    for (const end of this.#endListening) end();
    const rested = this.#upkeep.close();
    await this.#registrations.close();
    await rested;
    try {
      await this.#membership.close();
      await database.announce('consumers.nodes', nodeId);
    } catch (error) {
      log.warn({ event: 'consumers.leave-failed', error }, 'the shares are free when the lease has passed');
    }
  }

  /** What the work of either kind needs to know of this node and to tell it. */
  #shareOptions(consumerId: string) {
    const settle = ({ address: { topicName } }: WorkedShare) => {
      this.#registrations.get(consumerId)?.allotment.settle(topicName);
    };
    return {
      incarnation: this.#membership.incarnation,
      counts: this.#counters.of(consumerId),
      mayWork: () => this.#membership.isValid(),
      onLost: settle,
      onReleased: (share: WorkedShare) => {
        settle(share);
        this.#registrations.announceReleased(consumerId);
      },
    };
  }

  #add(work: ShareWork): Registered {
    if (this.#closed !== undefined) throw new Error('The consumer runner is closed');
    const allotment = new Allotment({
      ...this.#options,
      work,
      membership: this.#membership,
      partitions: this.#partitions,
      againMilliseconds: this.#timings.heartbeatMilliseconds,
    });
    const registered = { work, allotment };
    this.#registrations.add(registered, () => this.#upkeep.begin(registered));
    return registered;
  }

  #listen(): (() => void)[] {
    const { database, events, nodeId } = this.#options;
    const beat = () => this.#membership.beat();
    const settlePending = (id: string) => this.#registrations.get(id)?.allotment.settlePending();
    return [
      events.listen((address) => this.#hear(address)),
      database.listen('consumers.nodes', (id) => id !== nodeId && beat(), beat),
      database.listen('consumers.released', settlePending),
      database.listen('consumers.redriven', (id) => this.#checkRedriven(id)),
      database.listen(awaitedChannel, (name) => this.#hearAwaited(name)),
    ];
  }

  #hear(address: PartitionAddress): void {
    const { organizationId, topicName, partition } = address;
    let isNew: boolean | undefined;
    for (const { work, allotment } of this.#registrations) {
      if (work.consumer.organizationId !== organizationId) continue;
      isNew ??= this.#partitions.add(address);
      if (!work.notice(topicName, partition)) allotment.hear(topicName, isNew);
    }
  }

  #checkRedriven(consumerId: string): void {
    const { log } = this.#options;
    const check = this.#registrations.get(consumerId)?.allotment.checkRedriven();
    check?.catch((error: unknown) => {
      log.warn({ event: 'consumers.redrive-failed', error }, 'dead letters wait for the next poll');
    });
  }

  /** Tells every node, this one first, that somebody waits for a topic, perhaps one that was never seen. */
  #announceAwaited(consumerId: string, topicName: string): void {
    const { database, log } = this.#options;
    database.announce(awaitedChannel, `${consumerId}\n${topicName}`).catch((error: unknown) => {
      log.warn({ event: 'consumers.announce-failed', error }, 'other nodes will see it later');
    });
  }

  #hearAwaited(name: string): void {
    const [consumerId = '', topicName = ''] = name.split('\n');
    const registered = this.#registrations.get(consumerId);
    if (registered !== undefined) void this.#upkeep.look(registered, topicName);
  }
}
