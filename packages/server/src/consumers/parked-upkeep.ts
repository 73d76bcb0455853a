import type { Database } from '../database/database.ts';
import type { Clock } from '../platform/clock.ts';
import type { Log } from '../platform/log.ts';
import type { Committer } from './committer.ts';
import type { Outcomes } from './outcomes.ts';
import { listParkedOfKey } from './parked-store.ts';
import { moveRedriven } from './parking.ts';
import type { Share } from './share.ts';

export interface ParkedUpkeepOptions {
  readonly consumerId: string;
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Log;
  readonly committer: Committer;
  readonly outcomes: Outcomes;
  /** Keys that may be parked before no more dead letters are moved. */
  readonly mostParkedKeys: number;
  onLost(share: Share): void;
  /** Something may be tried now. */
  onParked(): void;
}

/** Keeps what is known of the parked records of one consumer and their rows alike. */
export class ParkedUpkeep {
  readonly #options: ParkedUpkeepOptions;

  constructor(options: ParkedUpkeepOptions) {
    this.#options = options;
  }

  /** Moves dead letters that are to be handled again to the parked records of their share. */
  redrive(share: Share): void {
    const { consumerId, database, clock, committer, outcomes, mostParkedKeys } = this.#options;
    committer.run(async () => {
      if (share.state !== 'held' || outcomes.parkedKeys() >= mostParkedKeys) return;
      try {
        const moved = await moveRedriven(database, consumerId, share);
        if (moved === undefined) return this.#options.onLost(share);
        for (const key of moved.keys) {
          share.parked.park(key, clock.now());
          outcomes.parkWaiting(share, key);
        }
        if (moved.more) this.redrive(share);
        this.#options.onParked();
      } catch (error) {
        // Whether it was done is unknown, so what is known of the share is not to be trusted.
        this.#warn('consumers.redrive-failed', error);
        this.#options.onLost(share);
      }
    });
  }

  /** A key that is thought parked and has no rows would wait for ever. */
  check(share: Share, key: string): void {
    const { consumerId, database, committer } = this.#options;
    committer.run(async () => {
      try {
        const rows = await listParkedOfKey(database.query, consumerId, share.address, key, 1);
        const unwritten = share.changes.puts.values().some((record) => record.key === key);
        if (rows.length === 0 && !unwritten) share.parked.delete(key);
      } catch (error) {
        this.#warn('consumers.check-failed', error);
      }
    });
  }

  #warn(event: string, error: unknown): void {
    const { log, consumerId } = this.#options;
    log.warn({ event, consumer: consumerId, error }, 'parked records could not be looked after');
  }
}
