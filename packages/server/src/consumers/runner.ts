import type { Database } from '../database/database.ts';
import type { EventLog, PartitionAddress } from '../events/events.ts';
import type { Clock } from '../platform/clock.ts';
import type { Log } from '../platform/log.ts';
import type { Random } from '../platform/random.ts';
import { Allotment } from './allotment.ts';
import { chooseNode } from './assignment.ts';
import type { Consumer, Registration } from './consumer.ts';
import { DeadLetters } from './dead-letters.ts';
import { type ConsumerFigures, Counters } from './figures.ts';
import { Membership } from './membership.ts';
import { Memory } from './memory.ts';
import { KnownPartitions } from './partitions.ts';
import { deleteConsumer, listHeld, releaseShare, shareId } from './share-store.ts';
import { consumerStatus, kindFigures } from './status.ts';
import { trimTopic } from './trim.ts';
import { ConsumerWork } from './work.ts';

export interface RunnerTimings {
  /** A node that has not been heard of for so long is dead, and its shares are taken by others. */
  readonly leaseMilliseconds: number;
  readonly heartbeatMilliseconds: number;
  /** How often the log is asked for what it did not tell of. */
  readonly pollMilliseconds: number;
  /** How long calls under way may take when the runner closes, before they are aborted. */
  readonly drainMilliseconds: number;
  /** How long records stay in the log at least. */
  readonly retentionMilliseconds: number;
}

export interface RunnerLimits {
  /** Bytes that all consumers of this node together may have read ahead. */
  readonly memoryBytes: number;
  /** Keys of a consumer that may be parked on this node before it is given nothing new. */
  readonly parkedKeys: number;
}

export interface RunnerOptions {
  readonly database: Database;
  readonly events: EventLog;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Stands for one process at a time. A process that starts with the id of a dead one takes its place at once. */
  readonly nodeId: string;
  readonly timings?: Partial<RunnerTimings>;
  readonly limits?: Partial<RunnerLimits>;
  /** A time in milliseconds that never jumps. */
  readonly monotonic?: () => number;
}

/** A dead node's shares move within a lease, a heartbeat of another node and a moment: under ten seconds. */
export const defaultTimings: RunnerTimings = {
  leaseMilliseconds: 7_000,
  heartbeatMilliseconds: 2_000,
  pollMilliseconds: 30_000,
  drainMilliseconds: 10_000,
  retentionMilliseconds: 86_400_000,
};

export const defaultLimits: RunnerLimits = { memoryBytes: 128 * 1024 * 1024, parkedKeys: 10_000 };

interface Registered {
  readonly work: ConsumerWork;
  readonly allotment: Allotment;
}

/** Runs consumers on this node, sharing the work with all other nodes on the same database. See README.md. */
export class ConsumerRunner {
  readonly deadLetters: DeadLetters;
  readonly figures: ConsumerFigures;
  readonly #options: RunnerOptions;
  readonly #timings: RunnerTimings;
  readonly #limits: RunnerLimits;
  readonly #membership: Membership;
  readonly #partitions: KnownPartitions;
  readonly #memory: Memory;
  readonly #counters = new Counters();
  readonly #registered = new Map<string, Registered>();
  /** Consumers that were removed and still have calls under way. */
  readonly #closing = new Map<string, Promise<void>>();
  readonly #released = new Set<string>();
  readonly #endListening: (() => void)[];
  #poll: NodeJS.Timeout | undefined;
  #polling: Promise<void> = Promise.resolve();
  #closed: Promise<void> | undefined;

  constructor(options: RunnerOptions) {
    this.#options = options;
    this.#timings = { ...defaultTimings, ...options.timings };
    this.#limits = { ...defaultLimits, ...options.limits };
    this.#memory = new Memory(this.#limits.memoryBytes);
    this.#partitions = new KnownPartitions(options.events);
    this.deadLetters = new DeadLetters(options.database);
    this.figures = {
      read: () => kindFigures(this.#works(), this.#counters, options),
    };
    this.#membership = new Membership({
      ...options,
      monotonic: options.monotonic ?? (() => performance.now()),
      timings: this.#timings,
      onChange: () => this.#settleAll(),
      onLost: () => this.#loseAll(),
    });
    this.#endListening = this.#listen();
    this.#membership.beat();
    this.#pollLater();
  }

  /** Begins to run a consumer. One with the same id must have been removed before. */
  register(consumer: Consumer): Registration {
    if (this.#closed !== undefined) throw new Error('The consumer runner is closed');
    if (this.#registered.has(consumer.id))
      throw new Error(`The consumer ${consumer.id} is registered already`);
    const registered = this.#prepare(consumer);
    this.#registered.set(consumer.id, registered);
    // Two runs of one consumer on a node could not tell their calls apart.
    void (this.#closing.get(consumer.id) ?? Promise.resolve()).then(() => this.#begin(registered));
    const { work } = registered;
    return {
      pause: () => work.pause(),
      resume: () => work.resume(),
      remove: () => this.#remove(registered),
      status: () => consumerStatus(work, this.#options),
    };
  }

  /** Deletes the cursors, parked records and dead letters of a consumer that no node runs any more. */
  async forget(organizationId: string, consumerId: string): Promise<void> {
    await this.#closing.get(consumerId);
    await deleteConsumer(this.#options.database, organizationId, consumerId);
  }

  /** Lets go of what is old and every consumer has passed. To be called from time to time, on every node. */
  async trimLog(): Promise<void> {
    const { events, clock, nodeId } = this.#options;
    const acceptedBefore = clock.now() - this.#timings.retentionMilliseconds;
    for (const topic of await events.topics()) {
      const name = `${topic.organizationId}/${topic.topicName}`;
      if (!this.#membership.isValid() || this.#closed !== undefined) return;
      if (chooseNode(name, this.#membership.nodes()) !== nodeId) continue;
      const readers = new Set<string>();
      const strangers = new Set<string>();
      for (const { consumer } of this.#works()) {
        if (consumer.organizationId !== topic.organizationId) continue;
        (consumer.wants(topic.topicName) ? readers : strangers).add(consumer.id);
      }
      await trimTopic(topic, { ...this.#options, acceptedBefore, readers, strangers });
    }
  }

  /** Ends what is in hand within the bound, and leaves, so that other nodes take over at once. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    const { database, log, nodeId } = this.#options;
    for (const end of this.#endListening) end();
    clearTimeout(this.#poll);
    await Promise.all([...this.#registered.values()].map((registered) => this.#end(registered)));
    await Promise.all(this.#closing.values());
    await this.#polling;
    try {
      await this.#membership.close();
      await database.announce('consumers.nodes', nodeId);
    } catch (error) {
      log.warn({ event: 'consumers.leave-failed', error }, 'the shares are free when the lease has passed');
    }
  }

  #prepare(consumer: Consumer): Registered {
    const { log, clock, nodeId } = this.#options;
    const work = new ConsumerWork({
      ...this.#options,
      consumer,
      log,
      clock,
      incarnation: this.#membership.incarnation,
      memory: this.#memory,
      counts: this.#counters.of(consumer.id),
      mostParkedKeys: this.#limits.parkedKeys,
      mayWork: () => this.#membership.isValid(),
      onLost: (share) => allotment.settle(share.address.topicName),
      onReleased: (share) => {
        allotment.settle(share.address.topicName);
        this.#announceReleased(consumer.id);
      },
    });
    const allotment = new Allotment({
      ...this.#options,
      work,
      membership: this.#membership,
      partitions: this.#partitions,
      nodeId,
      againMilliseconds: this.#timings.heartbeatMilliseconds,
    });
    return { work, allotment };
  }

  async #begin(registered: Registered): Promise<void> {
    const { consumer } = registered.work;
    if (this.#registered.get(consumer.id) !== registered) return;
    this.#announceRegistrations();
    try {
      await this.#refresh(consumer.organizationId);
    } catch (error) {
      this.#options.log.warn({ event: 'consumers.poll-failed', error }, 'the log could not be asked');
      this.#pollLater(this.#timings.heartbeatMilliseconds);
    }
    registered.allotment.settle();
  }

  async #remove(registered: Registered): Promise<void> {
    const { id } = registered.work.consumer;
    if (this.#registered.get(id) === registered) {
      this.#registered.delete(id);
      this.#closing.set(
        id,
        this.#end(registered).finally(() => this.#closing.delete(id)),
      );
      if (this.#closed === undefined) this.#announceRegistrations();
    }
    await this.#closing.get(id);
  }

  async #end({ work, allotment }: Registered): Promise<void> {
    await allotment.close();
    await work.close(this.#timings.drainMilliseconds);
  }

  #works(): ConsumerWork[] {
    return [...this.#registered.values()].map(({ work }) => work);
  }

  #announceRegistrations(): void {
    this.#membership.setConsumers(new Set(this.#registered.keys()));
  }

  #settleAll(): void {
    for (const { allotment } of this.#registered.values()) allotment.settle();
  }

  #loseAll(): void {
    for (const work of this.#works()) for (const share of [...work.shares.values()]) work.lose(share);
  }

  #listen(): (() => void)[] {
    const { database, events, nodeId } = this.#options;
    const beat = () => this.#membership.beat();
    const settlePending = (id: string) => this.#registered.get(id)?.allotment.settlePending();
    const checkRedriven = (id: string) => {
      this.#registered
        .get(id)
        ?.allotment.checkRedriven()
        .catch((error: unknown) => {
          this.#options.log.warn(
            { event: 'consumers.redrive-failed', error },
            'dead letters wait for the next poll',
          );
        });
    };
    return [
      events.listen((address) => this.#hear(address)),
      database.listen('consumers.nodes', (id) => id !== nodeId && beat(), beat),
      database.listen('consumers.released', settlePending),
      database.listen('consumers.redriven', checkRedriven),
    ];
  }

  #hear(address: PartitionAddress): void {
    const { organizationId, topicName, partition } = address;
    let known: boolean | undefined;
    for (const { work, allotment } of this.#registered.values()) {
      if (work.consumer.organizationId !== organizationId) continue;
      known ??= !this.#partitions.add(address);
      if (work.notice(topicName, partition) || known) continue;
      if (work.consumer.wants(topicName)) allotment.settle(topicName);
    }
  }

  /** Tells the others once that shares of a consumer are free, however many were given up at once. */
  #announceReleased(consumerId: string): void {
    const { database, log } = this.#options;
    if (this.#released.has(consumerId)) return;
    this.#released.add(consumerId);
    setTimeout(() => {
      this.#released.delete(consumerId);
      database.announce('consumers.released', consumerId).catch((error: unknown) => {
        log.warn({ event: 'consumers.announce-failed', error }, 'other nodes will see it later');
      });
    }, 5).unref();
  }

  #pollLater(milliseconds = this.#timings.pollMilliseconds): void {
    clearTimeout(this.#poll);
    this.#poll = setTimeout(() => {
      this.#polling = this.#pollOnce()
        .catch((error: unknown) => {
          this.#options.log.warn({ event: 'consumers.poll-failed', error }, 'the log could not be asked');
        })
        .then(() => {
          if (this.#closed === undefined) this.#pollLater();
        });
    }, milliseconds).unref();
  }

  /** Looks for everything that nobody told of. */
  async #pollOnce(): Promise<void> {
    const organizations = new Set(this.#works().map(({ consumer }) => consumer.organizationId));
    for (const organizationId of organizations) {
      if (this.#closed !== undefined) return;
      await this.#refresh(organizationId);
    }
    this.#settleAll();
    await this.#releaseStrays();
    for (const { allotment } of this.#registered.values()) await allotment.checkRedriven();
  }

  async #refresh(organizationId: string): Promise<void> {
    const works = this.#works().filter(({ consumer }) => consumer.organizationId === organizationId);
    await this.#partitions.refresh(
      organizationId,
      (topicName) => works.some(({ consumer }) => consumer.wants(topicName)),
      ({ topicName, partition }, last) => {
        for (const work of works) {
          const share = work.shares.get(shareId({ topicName, partition }));
          if (share !== undefined && share.readThrough < last) work.notice(topicName, partition);
        }
      },
    );
  }

  /** Gives up what the database says is ours and nobody here knows of, after a take of unknown outcome. */
  async #releaseStrays(): Promise<void> {
    const { query } = this.#options.database;
    for (const row of await listHeld(query, this.#membership.incarnation)) {
      const registered = this.#registered.get(row.consumer_id);
      const share = { topicName: row.topic_name, partition: row.partition, version: row.version };
      if (registered?.allotment.isBusy || registered?.work.shares.has(shareId(share))) continue;
      if (this.#closing.has(row.consumer_id)) continue;
      await releaseShare(query, row.consumer_id, share);
      this.#announceReleased(row.consumer_id);
    }
  }
}
