import type { Database } from '../../database/database.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import { Schedule } from '../../platform/schedule.ts';
import { Followers } from './followers.ts';
import { listLines, nextLines, positionOf } from './log-pages.ts';
import { type Batch, keyOf, type PendingBounds, PendingLogs } from './pending-logs.ts';
import type { LogLine, LogListing, LogPage, TaskLog } from './task-log.ts';
import { appendLines, deleteLog, type KeptBounds, lastPosition } from './task-log-store.ts';

export interface TaskLogBounds extends PendingBounds, KeptBounds {
  /** How often lines are kept. */
  readonly keepMilliseconds: number;
  /** After how long a follower looks for itself, because a hint may have been lost. */
  readonly lookMilliseconds: number;
}

export const taskLogBounds: TaskLogBounds = {
  pendingLines: 5_000,
  pendingBytes: 1024 * 1024,
  allPendingBytes: 16 * 1024 * 1024,
  lineCharacters: 16 * 1024,
  keptLines: 50_000,
  keptBytes: 8 * 1024 * 1024,
  keepMilliseconds: 250,
  lookMilliseconds: 2_000,
};

export interface TaskLogOptions {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Log;
  readonly bounds?: Partial<TaskLogBounds>;
}

const channel = 'task-logs';
/** Tasks whose lines are kept in one transaction: fewer commits, and no long one. */
const tasksAtOnce = 16;
const announcedCharacters = 3_000;
const followedLines = 500;

/**
 * The logs of tasks in the database. Lines wait in memory for a moment and are then kept, those of several
 * tasks in one transaction; a crash loses that moment and nothing that was kept.
 */
export class TaskLogs implements TaskLog {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #bounds: TaskLogBounds;
  readonly #pending: PendingLogs;
  readonly #schedule: Schedule;
  readonly #followers = new Followers();
  readonly #closing = new AbortController();
  readonly #silence: () => void;
  /** Keeping and forgetting happen one after the other. */
  #turn: Promise<unknown> = Promise.resolve();
  /** A keeping that has not begun yet, and so will have whatever is written now. */
  #next: Promise<void> | undefined;

  constructor({ database, clock, log, bounds }: TaskLogOptions) {
    this.#database = database;
    this.#clock = clock;
    this.#log = log;
    this.#bounds = { ...taskLogBounds, ...bounds };
    this.#pending = new PendingLogs(this.#bounds, clock);
    this.#silence = database.listen(
      channel,
      (payload) => this.#followers.ring(payload.split('\n')),
      () => this.#followers.ringAll(),
    );
    this.#schedule = new Schedule(log);
    this.#schedule.every(this.#bounds.keepMilliseconds, 'task-logs', () => this.flush());
  }

  write(organizationId: string, taskId: string, line: LogLine): void {
    if (!this.#closing.signal.aborted) this.#pending.add(organizationId, taskId, line);
  }

  async list(organizationId: string, taskId: string, listing: LogListing): Promise<LogPage> {
    await this.flush();
    return listLines(this.#database.query, organizationId, taskId, listing);
  }

  /** The place of the newest line that is kept, for a `follow` that must miss nothing from here on. */
  async end(organizationId: string, taskId: string): Promise<string> {
    return String(await lastPosition(this.#database.query, organizationId, taskId));
  }

  async *follow(
    organizationId: string,
    taskId: string,
    signal: AbortSignal,
    after?: string | undefined,
  ): AsyncGenerator<LogLine> {
    const { query } = this.#database;
    const ended = AbortSignal.any([signal, this.#closing.signal]);
    const follower = this.#followers.join(keyOf(organizationId, taskId));
    try {
      let position = positionOf(after ?? (await this.end(organizationId, taskId)));
      while (!ended.aborted) {
        // The next hint is for what comes after this look.
        follower.reset();
        const range = { organizationId, taskId, after: position, since: undefined };
        const { lines, more } = await nextLines(query, range, followedLines);
        for (const placed of lines) {
          if (ended.aborted) return;
          // Places have no holes, so this follower came too late; from 0 it has been nowhere yet.
          if (position > 0 && placed.position !== position + 1) yield this.#gone(placed.line);
          position = placed.position;
          yield placed.line;
        }
        if (!more) await follower.wait(this.#bounds.lookMilliseconds, ended);
      }
    } finally {
      follower.leave();
    }
  }

  async forget(organizationId: string, taskId: string): Promise<void> {
    this.#pending.forget(organizationId, taskId);
    await this.#inTurn(() => deleteLog(this.#database.query, organizationId, taskId));
  }

  flush(): Promise<void> {
    if (this.#pending.isEmpty && this.#next === undefined) return this.#inTurn(async () => {});
    this.#next ??= this.#inTurn(() => {
      this.#next = undefined;
      return this.#keep();
    });
    return this.#next;
  }

  async close(): Promise<void> {
    await this.#schedule.close();
    try {
      // Once more for the line that says what was dropped.
      await this.flush();
      await this.flush();
    } catch (error) {
      const lines = this.#pending.count();
      this.#log.warn({ event: 'task-logs', lines, error }, 'the last lines of tasks could not be kept');
    }
    this.#closing.abort();
    this.#silence();
  }

  async #keep(): Promise<void> {
    const batches = this.#pending.batches();
    for (let start = 0; start < batches.length; start += tasksAtOnce) {
      const some = batches.slice(start, start + tasksAtOnce);
      await this.#database.transaction(async (transaction) => {
        for (const batch of some) await appendLines(transaction, batch, this.#bounds, this.#clock.now());
      });
      for (const batch of some) this.#pending.settle(batch);
      await this.#announce(some);
    }
  }

  /** Only a hint: the lines are kept, and a follower that does not hear of them looks for itself. */
  async #announce(batches: readonly Batch[]): Promise<void> {
    let keys: string[] = [];
    let characters = 0;
    const send = async () => {
      try {
        if (keys.length > 0) await this.#database.announce(channel, keys.join('\n'));
      } catch (error) {
        this.#log.warn({ event: 'task-logs', error }, 'new lines could not be announced');
      }
      keys = [];
      characters = 0;
    };
    for (const { organizationId, taskId } of batches) {
      const key = keyOf(organizationId, taskId);
      if (characters + key.length > announcedCharacters) await send();
      keys.push(key);
      characters += key.length + 1;
    }
    await send();
  }

  #gone({ time, version }: LogLine): LogLine {
    const text = 'Lines are missing here: they were gone before they were read.';
    return { time, version, requestId: '', stream: 'system', text };
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(work);
    this.#turn = turn.catch(() => {});
    return turn;
  }
}
