import { setTimeout as delay } from 'node:timers/promises';
import type { Database } from '../database/database.ts';
import type { Log } from '../platform/log.ts';
import type { Random } from '../platform/random.ts';
import { retryDelay } from './backoff.ts';
import type { Consumer, Delivery } from './consumer.ts';
import { insertDeadLetters } from './dead-letter-store.ts';
import { isFaultOfDatabase } from './fault.ts';
import { deleteParked, putParked } from './parked-store.ts';
import type { Share, ShareChanges } from './share.ts';
import { type CursorChange, findShare, moveCursors, releaseShare } from './share-store.ts';

/** A call whose consumer commits in the transaction of the cursors. */
export interface CallCommit {
  readonly shares: readonly Share[];
  /** What was handled of these shares. */
  handled(shares: ReadonlySet<Share>): readonly Delivery[];
  readonly commit: NonNullable<Consumer['commit']>;
  /** The consumer's commit threw: what was handled has failed, and is noted so. */
  onRefused(error: unknown): void;
  /** It is written, or its shares are lost. */
  onDone(): void;
}

export interface CommitterOptions {
  readonly consumerId: string;
  readonly incarnation: string;
  readonly database: Database;
  readonly random: Random;
  readonly log: Log;
  /** Another node has the share. */
  onLost(share: Share): void;
  /** Something of a share is written, also what became of these parked keys. */
  onWritten(share: Share, tried: ReadonlySet<string>): void;
  onReleased(share: Share): void;
}

interface Part {
  readonly share: Share;
  readonly change: CursorChange;
  readonly changes: ShareChanges;
}

/** The commit of the consumer failed, as against the database. */
class CommitRefused extends Error {}

const sharesAtOnce = 100;
const lazyMilliseconds = 1_000;
const faultDelays = { firstMilliseconds: 50, mostMilliseconds: 2_000 };

/**
 * Writes how far the shares of one consumer have come, one transaction at a time: everything that was
 * settled since the last one goes together. Each cursor is moved only if the share still has the version
 * this node wrote last, in the same transaction as all else that is written, so a node that lost a share
 * without noticing changes nothing.
 */
export class Committer {
  readonly #options: CommitterOptions;
  readonly #touched = new Set<Share>();
  readonly #lazy = new Set<Share>();
  readonly #calls: CallCommit[] = [];
  readonly #jobs: (() => Promise<void>)[] = [];
  readonly #leaving = new Set<Share>();
  readonly #stopped = new AbortController();
  #running: Promise<void> | undefined;
  #lazyTimer: NodeJS.Timeout | undefined;

  constructor(options: CommitterOptions) {
    this.#options = options;
  }

  /** Something of the share is settled. */
  touch(share: Share): void {
    this.#touched.add(share);
    this.#start();
  }

  /** Only records that are not selected were passed; that can wait for a moment. */
  touchLazily(share: Share): void {
    this.#lazy.add(share);
    this.#lazyTimer ??= setTimeout(() => this.#hurry(), lazyMilliseconds).unref();
  }

  commitCall(call: CallCommit): void {
    this.#calls.push(call);
    this.#start();
  }

  /** Work on the rows of shares that must not overlap with the writing of cursors. */
  run(job: () => Promise<void>): void {
    this.#jobs.push(job);
    this.#start();
  }

  /** Gives a share up once everything of it is written. It must be leaving and nothing of it be out. */
  release(share: Share): void {
    this.#hurry();
    this.#leaving.add(share);
    this.#start();
  }

  forget(share: Share): void {
    this.#touched.delete(share);
    this.#lazy.delete(share);
    this.#leaving.delete(share);
  }

  /** Resolves when everything is written, or nothing more will be. */
  async settled(): Promise<void> {
    this.#hurry();
    while (this.#running !== undefined) await this.#running;
  }

  /** Writes nothing more; what is being written is still waited for by `settled`. */
  stop(): void {
    this.#stopped.abort();
    clearTimeout(this.#lazyTimer);
  }

  #hurry(): void {
    clearTimeout(this.#lazyTimer);
    this.#lazyTimer = undefined;
    for (const share of this.#lazy) this.#touched.add(share);
    this.#lazy.clear();
    if (this.#touched.size > 0) this.#start();
  }

  #start(): void {
    this.#running ??= this.#writeAll().finally(() => {
      this.#running = undefined;
      if (this.#hasWork() && !this.#stopped.signal.aborted) this.#start();
    });
  }

  #hasWork(): boolean {
    return (
      this.#calls.length > 0 || this.#jobs.length > 0 || this.#leaving.size > 0 || this.#writable().length > 0
    );
  }

  /** A share that a call has for itself is written with that call. */
  #writable(): Share[] {
    const shares: Share[] = [];
    for (const share of this.#touched) {
      if (share.owner !== undefined) continue;
      shares.push(share);
      if (shares.length === sharesAtOnce) break;
    }
    return shares;
  }

  async #writeAll(): Promise<void> {
    // What is settled in this turn goes together.
    await Promise.resolve();
    while (!this.#stopped.signal.aborted) {
      const call = this.#calls.shift();
      if (call !== undefined) {
        await this.#write(call.shares, call);
        call.onDone();
        continue;
      }
      const shares = this.#writable();
      if (shares.length > 0) {
        for (const share of shares) this.#touched.delete(share);
        await this.#write(shares);
        continue;
      }
      const job = this.#jobs.shift();
      if (job !== undefined) {
        await job();
        continue;
      }
      const [leaving] = this.#leaving;
      if (leaving === undefined) return;
      this.#leaving.delete(leaving);
      await this.#release(leaving);
    }
  }

  /** Writes until it is written, the shares are lost, or nothing more may be written. */
  async #write(shares: readonly Share[], call?: CallCommit): Promise<void> {
    let parts = shares.filter((share) => share.state !== 'lost').map(partOf);
    if (call === undefined) parts = parts.filter(changesSomething);
    let committing = call;
    for (let attempt = 1; parts.length > 0; attempt += 1) {
      try {
        const fenced = await this.#tryWrite(parts, committing, attempt > 1);
        if (fenced.length === 0) break;
        for (const part of fenced) this.#options.onLost(part.share);
        parts = parts.filter((part) => !fenced.includes(part));
      } catch (error) {
        if (this.#stopped.signal.aborted) return;
        if (error instanceof CommitRefused && committing !== undefined) {
          for (const part of parts) part.share.restoreChanges(part.changes);
          committing.onRefused(error.cause);
          committing = undefined;
          parts = parts.map((part) => partOf(part.share));
          continue;
        }
        await this.#wait(error, attempt);
        if (this.#stopped.signal.aborted) return;
      }
      parts = parts.filter((part) => part.share.state !== 'lost');
    }
    for (const { share, change, changes } of parts) {
      share.committed = change.cursor;
      share.version = change.version + 1;
      share.wrote();
      this.#options.onWritten(share, changes.tried);
    }
  }

  /** Answers the parts that another node has; then nothing was written where there is more than cursors. */
  async #tryWrite(parts: readonly Part[], call: CallCommit | undefined, again: boolean): Promise<Part[]> {
    const { database, consumerId } = this.#options;
    const cursors = parts.map((part) => part.change);
    let moved = new Set<string>();
    let refusal: { readonly error: unknown } | undefined;
    if (call === undefined && parts.every(({ changes }) => isEmpty(changes))) {
      moved = await moveCursors(database.query, consumerId, cursors);
    } else {
      await database
        .transaction(async (transaction) => {
          moved = await moveCursors(transaction, consumerId, cursors);
          if (moved.size < parts.length) throw new Fenced();
          await putParked(
            transaction,
            consumerId,
            parts.flatMap(({ changes }) => [...changes.puts.values()]),
          );
          for (const { share, changes } of parts) {
            await deleteParked(transaction, consumerId, share.address, [...changes.deletes]);
          }
          const letters = parts.flatMap(({ changes }) => changes.letters);
          await insertDeadLetters(transaction, consumerId, letters);
          const handled = call?.handled(new Set(parts.map(({ share }) => share))) ?? [];
          if (call === undefined || handled.length === 0) return;
          await call.commit(transaction, handled).catch((error: unknown) => {
            // Passed on as it is, because a conflict is tried again by who knows it.
            refusal = { error };
            throw error;
          });
        })
        .catch((error: unknown) => {
          if (error instanceof Fenced) return;
          if (refusal === undefined || refusal.error !== error || isFaultOfDatabase(error)) throw error;
          throw new CommitRefused('The consumer could not commit', { cause: error });
        });
    }
    const missing = parts.filter((part) => !moved.has(part.share.id));
    if (missing.length === 0) return [];
    // After a fault the write may have been made although it was reported as failed.
    const fenced: Part[] = [];
    for (const part of missing) if (!again || !(await this.#wasWritten(part))) fenced.push(part);
    return fenced;
  }

  async #wasWritten({ change }: Part): Promise<boolean> {
    const { database, consumerId, incarnation } = this.#options;
    const row = await findShare(database.query, consumerId, change);
    return row?.holder === incarnation && row.version === change.version + 1 && row.cursor === change.cursor;
  }

  async #release(share: Share): Promise<void> {
    for (let attempt = 1; share.state === 'leaving'; attempt += 1) {
      try {
        const { version, address } = share;
        await releaseShare(this.#options.database.query, this.#options.consumerId, { ...address, version });
        break;
      } catch (error) {
        await this.#wait(error, attempt);
        if (this.#stopped.signal.aborted) return;
      }
    }
    this.#options.onReleased(share);
  }

  async #wait(error: unknown, attempt: number): Promise<void> {
    const { log, consumerId, random } = this.#options;
    log.warn({ event: 'consumers.commit-failed', consumer: consumerId, attempt, error }, 'commit failed');
    const signal = this.#stopped.signal;
    await delay(retryDelay(faultDelays, attempt, random), undefined, { signal }).catch(() => {});
  }
}

class Fenced extends Error {}

function partOf(share: Share): Part {
  const { topicName, partition } = share.address;
  const change = { topicName, partition, version: share.version, cursor: share.cursor() };
  return { share, change, changes: share.takeChanges() };
}

function isEmpty({ puts, deletes, letters }: ShareChanges): boolean {
  return puts.size === 0 && deletes.size === 0 && letters.length === 0;
}

function changesSomething({ share, change, changes }: Part): boolean {
  return change.cursor !== share.committed || !isEmpty(changes);
}
