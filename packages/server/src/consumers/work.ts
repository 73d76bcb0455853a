import type { Database } from '../database/database.ts';
import type { EventLog } from '../events/events.ts';
import type { Clock } from '../platform/clock.ts';
import type { Log } from '../platform/log.ts';
import type { Random } from '../platform/random.ts';
import { Brake } from './brake.ts';
import { type Call, callConsumer, newCall } from './call.ts';
import { Committer } from './committer.ts';
import { type Consumer, defaultBatchBytes } from './consumer.ts';
import type { ConsumerCounts } from './figures.ts';
import { Intake } from './intake.ts';
import type { Memory } from './memory.ts';
import { Outcomes } from './outcomes.ts';
import { listParkedOfKey } from './parked-store.ts';
import { loadParkedKeys, moveRedriven } from './parking.ts';
import { Retries } from './retries.ts';
import { type Entry, Share } from './share.ts';
import { shareId, type TakenShare } from './share-store.ts';

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
 * turn, and notes what became of them. Nothing here waits in a loop: `#pump` starts what can be started
 * whenever something has changed.
 */
export class ConsumerWork {
  readonly consumer: Consumer;
  readonly shares = new Map<string, Share>();
  /** Records in calls. */
  inFlight = 0;

  readonly #options: WorkOptions;
  readonly #intake: Intake;
  readonly #retries: Retries;
  readonly #committer: Committer;
  readonly #brake: Brake;
  readonly #outcomes: Outcomes;
  readonly #calls = new Set<Call>();
  /** Shares with records that wait, those served least lately first. */
  readonly #waiting = new Set<Share>();
  #whenIdle: (() => void)[] = [];
  #paused = false;
  #closed = false;
  #retryFirst = false;
  #pumping = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: WorkOptions) {
    const { consumer, database, events, log, random } = options;
    this.consumer = consumer;
    this.#options = options;
    this.#brake = new Brake(consumer.retry, random);
    this.#retries = new Retries({ consumer, database, events, log });
    this.#intake = new Intake({
      ...options,
      onRead: (share) => this.#received(share),
      onRest: () => this.#wake(),
    });
    this.#committer = new Committer({
      ...options,
      consumerId: consumer.id,
      onLost: (share) => this.lose(share),
      onWritten: (share, tried) => {
        for (const key of tried) this.#retries.schedule(share, key);
        this.#wake();
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
  }

  /** Begins to work on shares of a topic that were taken. */
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
    this.#wake();
  }

  /** The log may have more of a partition. False when this node does not hold it. */
  notice(topicName: string, partition: number): boolean {
    const share = this.shares.get(shareId({ topicName, partition }));
    if (share === undefined) return false;
    this.#intake.notice(share);
    this.#wake();
    return true;
  }

  /** Gives a share to others once what is out of it has ended and is written. */
  leave(share: Share): void {
    if (share.state !== 'held') return;
    share.state = 'leaving';
    this.#releaseWhenDone(share);
  }

  /** Stops at once: somebody else works on the share, or soon may. */
  lose(share: Share): void {
    if (share.state === 'lost') return;
    share.state = 'lost';
    for (const call of this.#calls) if (call.shares.has(share)) call.controller.abort();
    this.#forget(share);
    this.#options.onLost(share);
  }

  /** Whether a call still has records of a share that was lost. */
  hasLeftover(id: string): boolean {
    for (const call of this.#calls) {
      for (const share of call.shares) if (share.id === id && share.state === 'lost') return true;
    }
    return false;
  }

  /** Moves dead letters that are to be handled again to the parked records of their shares. */
  redrive(topicName: string, partition: number): void {
    const share = this.shares.get(shareId({ topicName, partition }));
    if (share === undefined) return;
    this.#committer.run(async () => {
      if (share.state !== 'held' || this.#outcomes.parkedKeys() >= this.#options.mostParkedKeys) return;
      try {
        const moved = await moveRedriven(this.#options.database, this.consumer.id, share);
        if (moved === undefined) return this.lose(share);
        for (const key of moved.keys) {
          share.parked.park(key, this.#options.clock.now());
          this.#outcomes.parkWaiting(share, key);
        }
        if (moved.more) this.redrive(topicName, partition);
        this.#wake();
      } catch (error) {
        // Whether it was done is unknown, so what is known of the share is not to be trusted.
        this.#warn('consumers.redrive-failed', error);
        this.lose(share);
      }
    });
  }

  async pause(): Promise<void> {
    this.#paused = true;
    await this.#idle();
  }

  resume(): void {
    this.#paused = false;
    this.#wake();
  }

  /** Hands out nothing more, gives what is in hand so much time, and gives up all shares. */
  async close(drainMilliseconds: number): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#intake.close();
    this.#retries.clear();
    const abort = setTimeout(() => this.#abortAll(), drainMilliseconds);
    const limit = Promise.withResolvers<void>();
    const giveUp = setTimeout(limit.resolve, drainMilliseconds + abortMilliseconds);
    for (const share of [...this.shares.values()]) this.leave(share);
    await Promise.race([limit.promise, this.#idle().then(() => this.#committer.settled())]);
    clearTimeout(abort);
    clearTimeout(giveUp);
    this.#committer.stop();
    this.#abortAll();
    for (const share of [...this.shares.values()]) this.#forget(share);
  }

  #abortAll(): void {
    for (const call of this.#calls) call.controller.abort();
  }

  #wake(): void {
    if (this.#pumping || this.#closed) return;
    this.#pumping = true;
    // In a turn of its own, so that a consumer that is never waited for leaves time for everything else.
    setImmediate(() => {
      this.#pumping = false;
      if (!this.#closed) this.#pump();
    });
  }

  #pump(): void {
    clearTimeout(this.#timer);
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
    if (next === Number.POSITIVE_INFINITY) return;
    this.#timer = setTimeout(() => this.#wake(), Math.min(Math.max(next - now, 1), 60_000)).unref();
  }

  #startFresh(): boolean {
    const { clock, mostParkedKeys } = this.#options;
    if (clock.now() < this.#brake.until || this.#outcomes.parkedKeys() >= mostParkedKeys) return false;
    const { batchSize, batchBytes = defaultBatchBytes, commit } = this.consumer;
    const call = newCall();
    const entries: Entry[] = [];
    let room = batchBytes;
    let toSee = this.#waiting.size;
    for (const share of this.#waiting) {
      if (toSee === 0 || entries.length >= batchSize || room <= 0) break;
      toSee -= 1;
      if (commit !== undefined && share.owner !== undefined) continue;
      const before = entries.length;
      if (share.state === 'held') room -= share.take(call, entries, batchSize - entries.length, room);
      this.#waiting.delete(share);
      if (share.state === 'held' && share.waiting > 0) this.#waiting.add(share);
      if (entries.length > before) this.#join(call, share);
    }
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
      this.#warn('consumers.retry-failed', error);
    }
    if (entries.length > 0 && share.state !== 'lost' && !this.#closed) return this.#run(call, entries);
    if (entries.length === 0) this.#checkParked(share, key);
    share.free(key, call);
    this.#outcomes.endRetry(call, this.#options.clock.now() + lookAgainMilliseconds);
    this.#endCall(call);
  }

  /** A key that is thought parked and has no rows would wait for ever. */
  #checkParked(share: Share, key: string): void {
    this.#committer.run(async () => {
      try {
        const { database } = this.#options;
        const rows = await listParkedOfKey(database.query, this.consumer.id, share.address, key, 1);
        const unwritten = share.changes.puts.values().some((record) => record.key === key);
        if (rows.length === 0 && !unwritten) share.parked.delete(key);
      } catch (error) {
        this.#warn('consumers.check-failed', error);
      }
    });
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
    if (this.#calls.size === 0) for (const resolve of this.#whenIdle.splice(0)) resolve();
    this.#wake();
  }

  #received(share: Share): void {
    if (share.state === 'held') {
      if (share.waiting > 0) this.#waiting.add(share);
      if (share.hasChanges()) this.#committer.touch(share);
      else if (share.cursor() > share.committed) this.#committer.touchLazily(share);
    }
    this.#wake();
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

  async #idle(): Promise<void> {
    if (this.#calls.size > 0) await new Promise<void>((resolve) => this.#whenIdle.push(resolve));
  }

  #warn(event: string, error: unknown): void {
    this.#options.log.warn({ event, consumer: this.consumer.id, error }, 'consumer work failed');
  }
}
