import { setTimeout as delay } from 'node:timers/promises';
import type { Transaction } from 'kysely';
import type { Database } from '../database/database.ts';
import type { Schema } from '../database/schema.ts';
import { type PartitionAddress, partitionCount } from '../events/events.ts';
import type { Log } from '../platform/log.ts';
import type { Random } from '../platform/random.ts';
import { retryDelay } from './backoff.ts';
import type { ConsumerCounts } from './figures.ts';
import { advanceShares, type Step } from './range-advance.ts';
import { RangeShare } from './range-share.ts';
import { RangeWaits } from './range-waits.ts';
import {
  type HeldRange,
  type RangeConsumer,
  type RangeMove,
  RangeOutcomeUnknownError,
  type RangeTarget,
} from './ranges.ts';
import { releaseShare, shareId, type TakenShare } from './share-store.ts';
import type { ShareWork } from './share-work.ts';

export interface RangeWorkOptions {
  readonly consumer: RangeConsumer;
  readonly incarnation: string;
  readonly database: Database;
  readonly random: Random;
  readonly log: Log;
  readonly counts: ConsumerCounts;
  /** How long a share that is to go waits for the advance under way; then that is made to fail. */
  readonly drainMilliseconds: number;
  /** Whether this node is sure that nobody else took its shares. */
  mayWork(): boolean;
  /** A share went to another node, or may have. */
  onLost(share: RangeShare): void;
  onReleased(share: RangeShare): void;
  /** Somebody waits for cursors of a topic, so every node should see to it that its shares are held. */
  onAwaited(topicName: string): void;
}

const faultDelays = { firstMilliseconds: 50, mostMilliseconds: 2_000 };
/** For an advance to hear that it was committed. */
const hearMilliseconds = 1_000;

/** A range consumer on this node: which shares it has, and the moving of their cursors. */
export class RangeWork implements ShareWork {
  readonly consumer: RangeConsumer;
  readonly shares = new Map<string, RangeShare>();
  readonly inFlight = 0;
  readonly keepsUnwanted = true;
  readonly #options: RangeWorkOptions;
  /** Shares in advances, also those that were lost meanwhile. */
  readonly #advancing = new Set<RangeShare>();
  readonly #releasing = new Set<Promise<void>>();
  readonly #stopped = new AbortController();
  readonly #waits: RangeWaits;
  #closed = false;

  constructor(options: RangeWorkOptions) {
    this.consumer = options.consumer;
    this.#options = options;
    this.#waits = new RangeWaits({
      ...options,
      consumerId: options.consumer.id,
      cursorOf: (topicName, partition) => this.shares.get(shareId({ topicName, partition }))?.committed ?? 0,
    });
  }

  async hold(topicName: string, taken: readonly TakenShare[]): Promise<void> {
    if (this.#closed || !this.#options.mayWork() || taken.length === 0) return;
    const { organizationId } = this.consumer;
    for (const { partition, cursor, version } of taken) {
      const share = new RangeShare({ organizationId, topicName, partition }, cursor, version);
      this.shares.set(share.id, share);
    }
    this.#tell('noticed', topicName);
  }

  notice(topicName: string, partition: number): boolean {
    const share = this.shares.get(shareId({ topicName, partition }));
    if (share === undefined) return false;
    share.notice();
    this.#tell('noticed', topicName);
    return true;
  }

  compare({ topicName, partition }: PartitionAddress, last: number): void {
    const share = this.shares.get(shareId({ topicName, partition }));
    if (share === undefined) return;
    share.compare(last);
    if (share.committed < last) this.#tell('noticed', topicName);
  }

  held(topicName: string): HeldRange[] {
    if (!this.#options.mayWork()) return [];
    const ranges: HeldRange[] = [];
    for (let partition = 0; partition < partitionCount; partition += 1) {
      const share = this.shares.get(shareId({ topicName, partition }));
      if (share?.state === 'held') ranges.push({ address: share.address, cursor: share.committed });
    }
    return ranges;
  }

  topics(): string[] {
    if (!this.#options.mayWork()) return [];
    const names = new Set<string>();
    for (const { state, address } of this.shares.values()) if (state === 'held') names.add(address.topicName);
    return [...names];
  }

  /** See `RangeRegistration`. Advances of the same share come one after the other. */
  async advance(
    moves: readonly RangeMove[],
    work: (transaction: Transaction<Schema>) => Promise<void>,
  ): Promise<'moved' | 'lost'> {
    const ids = new Set(moves.map(({ address }) => shareId(address)));
    if (ids.size < moves.length) throw new RangeError('A share can be moved only once in an advance');
    if (moves.length === 0) throw new RangeError('An advance moves at least one share');
    let shares = this.#heldOf(ids);
    while (shares?.some(({ advancing }) => advancing !== undefined)) {
      await Promise.all(shares.map(({ advancing }) => advancing));
      shares = this.#heldOf(ids);
    }
    if (shares === undefined) return 'lost';
    const steps = shares.map((share, index) => stepOf(share, moves[index]));
    const { promise, resolve } = Promise.withResolvers<void>();
    for (const share of shares) {
      share.advancing = promise;
      this.#advancing.add(share);
    }
    try {
      const stopped = this.#stopped.signal;
      const onFenced = (share: RangeShare) => this.#lose(share);
      const outcome = await advanceShares(steps, work, {
        ...this.#options,
        consumerId: this.consumer.id,
        stopped,
        onFenced,
      });
      if (outcome === 'moved') this.#moved(steps);
      return outcome;
    } catch (error) {
      // Where the outcome is unknown, so is the version.
      if (error instanceof RangeOutcomeUnknownError) for (const share of shares) this.#lose(share);
      throw error;
    } finally {
      this.#endAdvance(shares);
      resolve();
    }
  }

  async reached(topicName: string, targets: readonly RangeTarget[], signal: AbortSignal): Promise<boolean> {
    if (signal.aborted || this.#closed) return false;
    if (await this.#waits.check(topicName, targets)) return true;
    this.#options.onAwaited(topicName);
    return await this.#waits.reached(topicName, targets, signal);
  }

  leave(id: string): void {
    const share = this.shares.get(id);
    if (share?.state !== 'held') return;
    share.state = 'leaving';
    this.#tell('lost', share.address.topicName);
    const releasing = this.#release(share).finally(() => this.#releasing.delete(releasing));
    this.#releasing.add(releasing);
  }

  loseAll(): void {
    for (const share of [...this.shares.values()]) this.#lose(share);
  }

  hasLeftover(id: string): boolean {
    for (const share of this.#advancing) if (share.id === id && share.state === 'lost') return true;
    return false;
  }

  async close(drainMilliseconds: number): Promise<void> {
    this.#closed = true;
    const limit = setTimeout(() => this.#stopped.abort(), drainMilliseconds);
    for (const id of [...this.shares.keys()]) this.leave(id);
    const ended = Promise.all([...this.#releasing, ...[...this.#advancing].map((share) => share.advancing)]);
    await Promise.race([ended, aborted(this.#stopped.signal)]);
    clearTimeout(limit);
    this.#stopped.abort();
    for (const share of this.shares.values()) share.state = 'lost';
    this.shares.clear();
    this.#waits.close();
  }

  #heldOf(ids: ReadonlySet<string>): RangeShare[] | undefined {
    const shares: RangeShare[] = [];
    for (const id of ids) {
      const share = this.shares.get(id);
      if (share?.state !== 'held') return undefined;
      shares.push(share);
    }
    return shares;
  }

  #moved(steps: readonly Step[]): void {
    for (const { share, change } of steps) {
      this.#options.counts.handled += change.cursor - share.committed;
      share.committed = change.cursor;
      share.version = change.version + 1;
    }
    this.#waits.announce(steps.map(({ change }) => change.topicName));
  }

  #endAdvance(shares: readonly RangeShare[]): void {
    for (const share of shares) {
      share.advancing = undefined;
      this.#advancing.delete(share);
      // Only now may this node have it again.
      if (share.state === 'lost') this.#options.onLost(share);
    }
  }

  #lose(share: RangeShare): void {
    if (share.state === 'lost') return;
    this.#forget(share);
    this.#tell('lost', share.address.topicName);
    this.#options.onLost(share);
  }

  #forget(share: RangeShare): void {
    share.state = 'lost';
    if (this.shares.get(share.id) === share) this.shares.delete(share.id);
  }

  async #release(share: RangeShare): Promise<void> {
    const { database, log, random, drainMilliseconds } = this.#options;
    const { topicName, partition } = share.address;
    if (share.advancing !== undefined) await within(drainMilliseconds, share.advancing, this.#stopped.signal);
    for (let attempt = 1; share.state === 'leaving' && !this.#stopped.signal.aborted; attempt += 1) {
      try {
        const { version } = share;
        const released = await releaseShare(database.query, this.consumer.id, {
          topicName,
          partition,
          version,
        });
        if (!released && (share.advancing !== undefined || share.version !== version)) {
          // The advance that was not waited for was committed after all.
          if (share.advancing !== undefined) {
            await within(hearMilliseconds, share.advancing, this.#stopped.signal);
          }
          continue;
        }
        this.#forget(share);
        return this.#options.onReleased(share);
      } catch (error) {
        log.warn({ event: 'consumers.release-failed', consumer: this.consumer.id, error }, 'release failed');
        const wait = retryDelay(faultDelays, attempt, random);
        await delay(wait, undefined, { signal: this.#stopped.signal }).catch(() => {});
      }
    }
  }

  #tell(what: 'noticed' | 'lost', topicName: string): void {
    try {
      this.consumer[what]?.(topicName);
    } catch (error) {
      this.#options.log.error(
        { event: 'consumers.notice-failed', consumer: this.consumer.id, topicName, error },
        'a range consumer failed when it was told of something',
      );
    }
  }
}

function stepOf(share: RangeShare, move: RangeMove | undefined): Step {
  const { topicName, partition } = share.address;
  const through = move?.through ?? share.committed;
  if (!Number.isSafeInteger(through) || through < share.committed) {
    throw new RangeError(`The cursor of ${share.id} cannot go from ${share.committed} to ${through}`);
  }
  return { share, change: { topicName, partition, version: share.version, cursor: through } };
}

async function within(milliseconds: number, ended: Promise<void>, signal: AbortSignal): Promise<void> {
  const over = new AbortController();
  const limit = delay(milliseconds, undefined, { signal: AbortSignal.any([signal, over.signal]) });
  await Promise.race([ended, limit.catch(() => {})]);
  over.abort();
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
