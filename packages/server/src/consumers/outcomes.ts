import type { Clock } from '../platform/clock.ts';
import type { Log } from '../platform/log.ts';
import type { Random } from '../platform/random.ts';
import type { Brake } from './brake.ts';
import { type Call, deliveriesOf, failAll } from './call.ts';
import type { Committer } from './committer.ts';
import { conclude, parkBehind } from './conclusion.ts';
import type { Consumer, Failure } from './consumer.ts';
import type { ConsumerCounts } from './figures.ts';
import type { Intake } from './intake.ts';
import type { Retries } from './retries.ts';
import type { Entry, Share } from './share.ts';

export interface OutcomesOptions {
  readonly consumer: Consumer;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly counts: ConsumerCounts;
  readonly intake: Intake;
  readonly retries: Retries;
  readonly committer: Committer;
  readonly brake: Brake;
  /** Nothing of the call is open any more but, perhaps, the writing of its cursors. */
  onEnd(call: Call): void;
}

/** What becomes of records once their call has ended. */
export class Outcomes {
  readonly #options: OutcomesOptions;
  /** Shares with parked keys. */
  readonly #parking = new Set<Share>();

  constructor(options: OutcomesOptions) {
    this.#options = options;
  }

  /** How many keys are parked in all shares. */
  parkedKeys(): number {
    let keys = 0;
    for (const share of this.#parking) {
      if (share.parked.size === 0 || share.state === 'lost') this.#parking.delete(share);
      else keys += share.parked.size;
    }
    return keys;
  }

  /** Takes a share whose parked keys were read. */
  watch(share: Share): void {
    if (share.parked.size > 0) this.#parking.add(share);
    for (const [key] of share.parked) this.#options.retries.schedule(share, key);
  }

  /** What a call that was aborted says does not count: its records wait again where they are still ours. */
  discard(call: Call, entries: readonly Entry[]): void {
    for (const entry of entries) {
      const { share, key } = entry;
      share.free(key, call);
      if (share.state === 'lost' || entry.parked) continue;
      if (share.parked.has(key)) this.#parkBehind(entry);
      else share.giveBack(entry);
    }
    this.endRetry(call, this.#options.clock.now());
    this.#options.onEnd(call);
  }

  conclude(call: Call, entries: readonly Entry[], failures: ReadonlyMap<number, Failure>): void {
    const { consumer, clock, brake } = this.#options;
    const conclusion = conclude(entries, failures, this.#options);
    this.#count(conclusion.handled.length, conclusion);
    if (failures.size < entries.length) brake.succeeded();
    else if (call.retried === undefined) brake.failed(clock.now());
    // They are needed once more if the consumer cannot commit.
    const kept = consumer.commit === undefined ? [] : conclusion.handled.map(asUnparked);
    for (const entry of entries) {
      entry.share.free(entry.key, call);
      if (entry.share.state !== 'lost') this.#settle(entry);
    }
    for (const { share, key } of conclusion.parked) this.parkWaiting(share, key);
    this.endRetry(call, conclusion.parked.length === 0 ? clock.now() : undefined);
    if (consumer.commit === undefined) this.#options.onEnd(call);
    else this.#commit(call, kept, consumer.commit.bind(consumer));
  }

  /** A key was parked: those of its records that wait go behind, and it is due at its time. */
  parkWaiting(share: Share, key: string): void {
    this.#parking.add(share);
    for (const entry of share.waitingOf(key)) this.#parkBehind(entry);
    this.#options.retries.schedule(share, key);
  }

  /** The key that a call tried may be tried again, at once or when it was said before. */
  endRetry({ retried }: Call, dueAt: number | undefined): void {
    if (retried === undefined) return;
    const known = retried.share.parked.get(retried.key);
    if (known === undefined) return;
    known.trying = false;
    if (dueAt !== undefined) known.dueAt = dueAt;
    this.#options.retries.schedule(retried.share, retried.key);
  }

  /** Has the consumer commit what was handled, in the transaction that moves the cursors. */
  #commit(call: Call, kept: readonly Entry[], commit: NonNullable<Consumer['commit']>): void {
    const { committer, log, consumer, onEnd } = this.#options;
    committer.commitCall({
      shares: [...call.shares],
      commit,
      handled: (shares) => deliveriesOf(kept.filter(({ share }) => shares.has(share))),
      onRefused: (error) => {
        log.warn({ event: 'consumers.commit-refused', consumer: consumer.id, error }, 'commit refused');
        const refused = conclude(kept, failAll(kept.length, error), this.#options);
        this.#count(-kept.length, refused);
        for (const { share, key } of refused.parked) this.parkWaiting(share, key);
      },
      onDone: () => onEnd(call),
    });
  }

  #count(handled: number, { failed, deadLettered }: { failed: number; deadLettered: number }): void {
    const { counts } = this.#options;
    counts.handled += handled;
    counts.failed += failed;
    counts.deadLettered += deadLettered;
  }

  #parkBehind(entry: Entry): void {
    parkBehind(entry, this.#options);
    this.#settle(entry);
    this.#options.committer.touch(entry.share);
  }

  #settle(entry: Entry): void {
    if (!entry.parked && entry.state !== 'settled') this.#options.intake.giveBack(1, entry.bytes);
    entry.share.settle(entry);
  }
}

/** Taken as one that is not parked, because the change that unparks it is noted already. */
function asUnparked(entry: Entry): Entry {
  return { ...entry, parked: false };
}
