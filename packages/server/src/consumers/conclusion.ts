import type { Clock } from '../platform/clock.ts';
import { type Random, randomBase62 } from '../platform/random.ts';
import { retryDelay } from './backoff.ts';
import type { Consumer, Failure } from './consumer.ts';
import type { Entry, Share } from './share.ts';
import { storedError, storeRecord } from './stored-record.ts';

export interface Terms {
  readonly consumer: Consumer;
  readonly clock: Clock;
  readonly random: Random;
}

export interface Conclusion {
  readonly handled: readonly Entry[];
  readonly failed: number;
  readonly deadLettered: number;
  /** Keys that are parked since now, and those whose first record is to be tried again later. */
  readonly parked: readonly { readonly share: Share; readonly key: string }[];
}

/**
 * What a call means for its records, noted as changes of their shares:
 *
 * - handled: nothing to note, or, of a parked record, that it is parked no more;
 * - failed, may be tried again: parked, and the later ones of its key in the call wait behind it, whatever
 *   the call said of them, because they must come after it;
 * - failed for good: a dead letter, and its key goes on.
 */
export function conclude(
  entries: readonly Entry[],
  failures: ReadonlyMap<number, Failure>,
  terms: Terms,
): Conclusion {
  const held = new Map<Share, Set<string>>();
  const handled: Entry[] = [];
  const parked: { share: Share; key: string }[] = [];
  let failed = 0;
  let deadLettered = 0;
  for (const [index, entry] of entries.entries()) {
    const { share, key } = entry;
    if (share.state === 'lost') continue;
    if (held.size > 0 && held.get(share)?.has(key)) {
      if (!entry.parked) parkBehind(entry, terms);
      continue;
    }
    const failure = failures.get(index);
    if (failure === undefined) {
      handled.push(entry);
      if (entry.parked) resolve(entry);
      continue;
    }
    failed += 1;
    if (failure.final || entry.attempts + 1 >= terms.consumer.maxAttempts) {
      if (entry.parked) resolve(entry);
      bury(entry, failure.error, terms);
      deadLettered += 1;
      continue;
    }
    parkFirst(entry, failure.error, terms);
    held.set(share, (held.get(share) ?? new Set()).add(key));
    parked.push({ share, key });
  }
  return { handled, failed, deadLettered, parked };
}

/** A record waits behind a parked one of its key, without having been tried. */
export function parkBehind(entry: Entry, { clock }: { readonly clock: Clock }): void {
  const { share, key, offset } = entry;
  share.parked.park(key, clock.now());
  share.put({
    ...share.address,
    offset,
    key,
    attempts: 0,
    nextAttemptAt: undefined,
    error: undefined,
    stored: undefined,
  });
}

function parkFirst(entry: Entry, error: string, { consumer, clock, random }: Terms): void {
  const { share, key, offset } = entry;
  const attempts = entry.attempts + 1;
  const dueAt = clock.now() + retryDelay(consumer.retry, attempts, random);
  const known = share.parked.get(key);
  if (entry.parked && known !== undefined) known.dueAt = dueAt;
  else share.parked.park(key, dueAt).dueAt = dueAt;
  share.put({
    ...share.address,
    offset,
    key,
    attempts,
    nextAttemptAt: dueAt,
    error: storedError(error),
    stored: undefined,
  });
}

function resolve({ share, key, offset }: Entry): void {
  share.parked.resolve(key);
  share.unpark(offset, key);
}

function bury(entry: Entry, error: string, { clock, random }: Terms): void {
  const { share, offset, delivery } = entry;
  if (delivery === undefined) return;
  const failedAt = clock.now();
  share.changes.letters.push({
    id: deadLetterId(failedAt, random),
    ...share.address,
    offset,
    attempts: entry.attempts + 1,
    error: storedError(error),
    failedAt,
    bytes: delivery.record.body.byteLength,
    stored: storeRecord(delivery.record),
  });
}

let letters = 0;

/** Sorts by time and, within a millisecond, by the order in which a node made them. */
function deadLetterId(time: number, random: Random): string {
  letters = (letters + 1) % 36 ** 4;
  return `${time.toString(36).padStart(9, '0')}${letters.toString(36).padStart(4, '0')}${randomBase62(random, 9)}`;
}
