import type { Database } from '../database/database.ts';
import type { EventLog, PartitionAddress } from '../events/events.ts';
import type { Clock } from '../platform/clock.ts';
import type { Log } from '../platform/log.ts';
import type { Random } from '../platform/random.ts';
import { Brake } from './brake.ts';
import { type Call, callConsumer, newCall } from './call.ts';
import { Calls } from './calls.ts';
import { Committer } from './committer.ts';
import type { Consumer } from './consumer.ts';
import type { ConsumerCounts } from './figures.ts';
import { Intake } from './intake.ts';
import type { Memory } from './memory.ts';
import { Outcomes } from './outcomes.ts';
import { ParkedUpkeep } from './parked-upkeep.ts';
import { loadParkedKeys } from './parking.ts';
import { Pump } from './pump.ts';
import { Retries } from './retries.ts';
import { type Entry, Share } from './share.ts';
import { shareId, type TakenShare } from './share-store.ts';
import type { ShareWork } from './share-work.ts';
import { Waiting } from './waiting.ts';

export interface WorkOptions {
  readonly consumer: Consumer;
  readonly incarnation: string;
  readonly database: Database;
  readonly events: EventLog;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly memory: Memory;
  readonly counts: ConsumerCounts;
  /** Keys that may be parked before nothing new is handed out. */
  readonly mostParkedKeys: number;
  /** Whether this node is sure that nobody else took its shares. */
  mayWork(): boolean;
  /** A share went to another node, or may have. */
  onLost(share: Share): void;
  onReleased(share: Share): void;
}

/** Another look at a key whose records could not be got yet. */
const lookAgainMilliseconds = 100;
/** For a call to end once it is aborted, and for its cursors to be written. */
const abortMilliseconds = 1_000;

/**
 * One consumer on this node: hands out what its shares have, fresh records and parked ones that are due in
 * turn, and notes what became of them. Nothing here waits in a loop: what can be started is started whenever
 * something has changed.
 */
export class ConsumerWork implements ShareWork {
  readonly consumer: Consumer;
  readonly shares = new Map<string, Share>();
  readonly keepsUnwanted = false;
  inFlight = 0;

  readonly #options: WorkOptions;
  readonly #intake: Intake;
  readonly #retries: Retries;
  readonly #committer: Committer;
  readonly #brake: Brake;
  readonly #outcomes: Outcomes;
  readonly #parked: ParkedUpkeep;
  readonly #calls = new Calls();
  readonly #pump = new Pump(() => this.#handOut());
  readonly #waiting = new Waiting();
  #paused = false;
  #closed = false;
  #retryFirst = false;

  constructor(options: WorkOptions) {
    const { consumer, database, events, log, random } = options;
    this.consumer = consumer;
    this.#options = options;
    this.#brake = new Brake(consumer.retry, random);
    this.#retries = new Retries({ consumer, database, events, log });
    this.#intake = new Intake({
      ...options,
      onRead: (share) => this.#received(share),
      onRest: () => this.#pump.wake(),
    });
    this.#committer = new Committer({
      ...options,
      consumerId: consumer.id,
      onLost: (share) => this.lose(share),
      onWritten: (share, tried) => {
        for (const key of tried) this.#retries.schedule(share, key);
        this.#pump.wake();
      },
      onReleased: (share) => {
        this.#forget(share);
        options.onReleased(share);
      },
    });
    this.#outcomes = new Outcomes({
      ...options,
      intake: this.#intake,
      retries: this.#retries,
      committer: this.#committer,
      brake: this.#brake,
      onEnd: (call) => this.#endCall(call),
    });
    this.#parked = new ParkedUpkeep({
      ...options,
      consumerId: consumer.id,
      committer: this.#committer,
      outcomes: this.#outcomes,
      onLost: (share) => this.lose(share),
      onParked: () => this.#pump.wake(),
    });
  }

  async hold(topicName: string, taken: readonly TakenShare[]): Promise<void> {
    const { organizationId, id } = this.consumer;
    const shares = taken.map(({ partition, cursor, version }) => {
      return new Share({ organizationId, topicName, partition }, cursor, version);
    });
    await loadParkedKeys(this.#options.database, id, topicName, shares);
    if (this.#closed || !this.#options.mayWork()) return;
    for (const share of shares) {
      this.shares.set(share.id, share);
      this.#outcomes.watch(share);
      this.#intake.notice(share);
    }
    this.#pump.wake();
  }

  notice(topicName: string, partition: number): boolean {
    const share = this.shares.get(shareId({ topicName, partition }));
    if (share === undefined) return false;
    this.#intake.notice(share);
    this.#pump.wake();
    return true;
  }

  compare({ topicName, partition }: PartitionAddress, last: number): void {
    const share = this.shares.get(shareId({ topicName, partition }));
    if (share !== undefined && share.readThrough < last) this.notice(topicName, partition);
  }

  leave(id: string): void {
    const share = this.shares.get(id);
    if (share?.state !== 'held') return;
    share.state = 'leaving';
    this.#releaseWhenDone(share);
  }

  /** Stops at once: somebody else works on the share, or soon may. */
  lose(share: Share): void {
    if (share.state === 'lost') return;
    share.state = 'lost';
    this.#calls.abortOf(share);
    this.#forget(share);
    this.#options.onLost(share);
  }

  loseAll(): void {
    for (const share of [...this.shares.values()]) this.lose(share);
  }

  hasLeftover(id: string): boolean {
    return this.#calls.hasLeftover(id);
  }

  redrive(topicName: string, partition: number): void {
    const share = this.shares.get(shareId({ topicName, partition }));
    if (share !== undefined) this.#parked.redrive(share);
  }

  async pause(): Promise<void> {
    this.#paused = true;
    await this.#calls.idle();
  }

  resume(): void {
    this.#paused = false;
    this.#pump.wake();
  }

  async close(drainMilliseconds: number): Promise<void> {
    this.#closed = true;
    this.#pump.close();
    this.#intake.close();
    this.#retries.clear();
    const abort = setTimeout(() => this.#calls.abortAll(), drainMilliseconds);
    const limit = Promise.withResolvers<void>();
    const giveUp = setTimeout(limit.resolve, drainMilliseconds + abortMilliseconds);
    for (const id of [...this.shares.keys()]) this.leave(id);
    await Promise.race([limit.promise, this.#calls.idle().then(() => this.#committer.settled())]);
    clearTimeout(abort);
    clearTimeout(giveUp);
    this.#committer.stop();
    this.#calls.abortAll();
    for (const share of [...this.shares.values()]) this.#forget(share);
  }

  #handOut(): void {
    if (this.#paused || !this.#options.mayWork()) return;
    while (this.#calls.size < this.consumer.concurrency) {
      const started = this.#retryFirst
        ? this.#startRetry() || this.#startFresh()
        : this.#startFresh() || this.#startRetry();
      if (!started) break;
      this.#retryFirst = !this.#retryFirst;
    }
    this.#intake.fill();
    this.#setTimer();
  }

  #setTimer(): void {
    if (this.#calls.size >= this.consumer.concurrency) return;
    const now = this.#options.clock.now();
    const times = [this.#retries.earliest ?? Number.POSITIVE_INFINITY];
    if (this.#brake.until > now && this.#waiting.size > 0) times.push(this.#brake.until);
    const next = Math.min(...times);
    if (next < Number.POSITIVE_INFINITY) this.#pump.wakeIn(next - now);
  }

  #startFresh(): boolean {
    const { clock, mostParkedKeys } = this.#options;
    if (clock.now() < this.#brake.until || this.#outcomes.parkedKeys() >= mostParkedKeys) return false;
    const call = newCall();
    const entries = this.#waiting.take(call, this.consumer, (share) => this.#join(call, share));
    if (entries.length === 0) return false;
    this.#calls.add(call);
    void this.#run(call, entries);
    return true;
  }

  #startRetry(): boolean {
    const next = this.#retries.take(this.#options.clock.now());
    if (next === undefined) return false;
    const call = newCall(next);
    next.share.occupy(next.key, call);
    this.#join(call, next.share);
    this.#calls.add(call);
    void this.#retry(call, next.share, next.key);
    return true;
  }

  #join(call: Call, share: Share): void {
    call.shares.add(share);
    share.out += 1;
    if (this.consumer.commit !== undefined) share.owner = call;
  }

  async #retry(call: Call, share: Share, key: string): Promise<void> {
    let entries: Entry[] = [];
    try {
      const loaded = await this.#retries.load({ share, key });
      entries = loaded.entries;
      for (const offset of loaded.missing) {
        share.parked.resolve(key);
        share.unpark(offset, key);
      }
    } catch (error) {
      const { log } = this.#options;
      log.warn({ event: 'consumers.retry-failed', consumer: this.consumer.id, error }, 'retry failed');
    }
    if (entries.length > 0 && share.state !== 'lost' && !this.#closed) return this.#run(call, entries);
    if (entries.length === 0) this.#parked.check(share, key);
    share.free(key, call);
    this.#outcomes.endRetry(call, this.#options.clock.now() + lookAgainMilliseconds);
    this.#endCall(call);
  }

  async #run(call: Call, entries: readonly Entry[]): Promise<void> {
    const { signal } = call.controller;
    this.inFlight += entries.length;
    const failures = await callConsumer(this.consumer, entries, signal);
    this.inFlight -= entries.length;
    if (signal.aborted) this.#outcomes.discard(call, entries);
    else this.#outcomes.conclude(call, entries, failures);
  }

  #endCall(call: Call): void {
    this.#calls.delete(call);
    for (const share of call.shares) {
      share.out -= 1;
      if (share.owner === call) share.owner = undefined;
      if (share.state === 'lost') {
        // Only now may this node work on it again.
        this.#options.onLost(share);
        continue;
      }
      this.#committer.touch(share);
      if (share.waiting > 0 && share.state === 'held') this.#waiting.add(share);
      this.#releaseWhenDone(share);
    }
    this.#pump.wake();
  }

  #received(share: Share): void {
    if (share.state === 'held') {
      if (share.waiting > 0) this.#waiting.add(share);
      if (share.hasChanges()) this.#committer.touch(share);
      else if (share.cursor() > share.committed) this.#committer.touchLazily(share);
    }
    this.#pump.wake();
  }

  #releaseWhenDone(share: Share): void {
    if (share.state === 'leaving' && share.out === 0) this.#committer.release(share);
  }

  #forget(share: Share): void {
    share.state = 'lost';
    this.shares.delete(share.id);
    this.#waiting.delete(share);
    this.#intake.forget(share);
    this.#intake.giveBack(share.unsettled, share.bytes);
    this.#committer.forget(share);
    share.drop();
  }
}
