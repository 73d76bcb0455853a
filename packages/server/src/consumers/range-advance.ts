import { setTimeout as delay } from 'node:timers/promises';
import type { Transaction } from 'kysely';
import type { Database } from '../database/database.ts';
import type { Schema } from '../database/schema.ts';
import type { Log } from '../platform/log.ts';
import type { Random } from '../platform/random.ts';
import { retryDelay } from './backoff.ts';
import { isFaultOfDatabase } from './fault.ts';
import type { RangeShare } from './range-share.ts';
import { RangeOutcomeUnknownError } from './ranges.ts';
import { type CursorChange, findShare, moveCursors, releaseShare } from './share-store.ts';

export interface AdvanceOptions {
  readonly consumerId: string;
  readonly incarnation: string;
  readonly database: Database;
  readonly random: Random;
  readonly log: Log;
  /** Whether this node is sure that nobody else took its shares. */
  mayWork(): boolean;
  /** Another node has the share. */
  onFenced(share: RangeShare): void;
  /** Nothing more is tried. */
  readonly stopped: AbortSignal;
}

export interface Step {
  readonly share: RangeShare;
  readonly change: CursorChange;
}

type Outcome = 'moved' | 'lost' | 'unknown';
type Work = (transaction: Transaction<Schema>) => Promise<void>;

const faultDelays = { firstMilliseconds: 20, mostMilliseconds: 1_000 };
/** How long a database that does not answer is asked. */
const patienceMilliseconds = 30_000;

class Fenced extends Error {
  readonly moved: ReadonlySet<string>;

  constructor(moved: ReadonlySet<string>) {
    super('A share has another version');
    this.moved = moved;
  }
}

/**
 * Moves the cursors of shares and does the work in one transaction, once.
 *
 * ```
 *   try ── committed ──────────────────────────────────────> moved
 *    │ ├── a version differs, and no attempt is in doubt ──> lost
 *    │ └── the work throws ────────────────────────────────> rejects
 *    └──── the database fails: in doubt; while the shares are ours try again, where a version that
 *          differs is looked at; once one is lost, raise its version, which rules out that an attempt
 *          is still to be committed, or look at what has raised it
 * ```
 */
export async function advanceShares(
  steps: readonly Step[],
  work: Work,
  options: AdvanceOptions,
): Promise<'moved' | 'lost'> {
  if (!options.mayWork()) return 'lost';
  const end = performance.now() + patienceMilliseconds;
  let inDoubt = false;
  for (let attempt = 1; ; attempt += 1) {
    try {
      const lost = steps.find(({ share }) => share.state === 'lost' || !options.mayWork());
      if (lost !== undefined) return await settle(lost, steps, options);
      return await attemptOnce(steps, work, options, inDoubt);
    } catch (error) {
      if (error instanceof Refused) throw error.cause;
      if (error instanceof RangeOutcomeUnknownError) throw error;
      inDoubt = true;
      const { log, consumerId, random, stopped } = options;
      log.warn({ event: 'consumers.advance-failed', consumer: consumerId, attempt, error }, 'advance failed');
      const wait = retryDelay(faultDelays, attempt, random);
      if (!stopped.aborted) await delay(wait, undefined, { signal: stopped }).catch(() => {});
      if (stopped.aborted || performance.now() > end) {
        throw new RangeOutcomeUnknownError('The database could not be asked in time', { cause: error });
      }
    }
  }
}

/** The work failed, as against the database. */
class Refused extends Error {}

async function attemptOnce(
  steps: readonly Step[],
  work: Work,
  options: AdvanceOptions,
  inDoubt: boolean,
): Promise<'moved' | 'lost'> {
  const { database, consumerId, onFenced } = options;
  const changes = steps.map((step) => step.change);
  let refusal: { readonly error: unknown } | undefined;
  try {
    await database.transaction(async (transaction) => {
      refusal = undefined;
      const moved = await moveCursors(transaction, consumerId, changes);
      if (moved.size < steps.length) throw new Fenced(moved);
      await work(transaction).catch((error: unknown) => {
        // Passed on as it is, because a conflict is tried again by who knows it.
        refusal = { error };
        throw error;
      });
    });
    return 'moved';
  } catch (error) {
    if (error instanceof Fenced) {
      const outcome = inDoubt ? await lookUp(steps, options) : 'lost';
      if (outcome !== 'moved') for (const { share } of steps) if (!error.moved.has(share.id)) onFenced(share);
      return answer(outcome);
    }
    if (refusal === undefined || refusal.error !== error || isFaultOfDatabase(error)) throw error;
    // The versions were still ours in this transaction, so no attempt before it was committed.
    throw new Refused('The work failed', { cause: error });
  }
}

/** Finds out what became of attempts in doubt when a share is no longer ours. */
async function settle(
  { share, change }: Step,
  steps: readonly Step[],
  options: AdvanceOptions,
): Promise<'moved' | 'lost'> {
  // An attempt that is still being committed holds the row: this waits for it, or makes it fail.
  const released = await releaseShare(options.database.query, options.consumerId, change);
  const outcome = released ? 'lost' : await lookUp(steps, options);
  options.onFenced(share);
  return answer(outcome);
}

/**
 * What the rows say, which were changed all or none. Taking and giving up a share raise its version by one
 * and leave the cursor; so where the version went up by one, it is clear who did it.
 */
async function lookUp(steps: readonly Step[], options: AdvanceOptions): Promise<Outcome> {
  const { database, consumerId, incarnation } = options;
  for (const { change } of steps) {
    const row = await findShare(database.query, consumerId, change);
    if (row === undefined) continue;
    if (row.cursor < change.cursor) return 'lost';
    if (row.version === change.version + 1) return row.holder === incarnation ? 'moved' : 'lost';
  }
  return 'unknown';
}

function answer(outcome: Outcome): 'moved' | 'lost' {
  if (outcome !== 'unknown') return outcome;
  throw new RangeOutcomeUnknownError('Another node went on before it was known whether this was done');
}
