import { setTimeout as delay } from 'node:timers/promises';
import { DatabaseBusyError } from '../database/errors.ts';
import type { Clock } from '../platform/clock.ts';
import { Problem, problem } from '../platform/problem.ts';
import { type Attributes, decodeAttributes, encodeAttributes } from './attributes.ts';
import { type EntryKey, entryOf, expiryOf, type StateEntry } from './entry.ts';
import { type FoundEntry, findEntry, insertEntry, type Queries, replaceFound } from './state-store.ts';

export interface Increment {
  readonly attribute: string;
  readonly by: number;
  readonly ttlInSec: number | undefined;
}

interface Waiting {
  readonly increment: Increment;
  resolve(outcome: StateEntry | Problem): void;
  reject(error: unknown): void;
}

/** The entry after some increments that are not written yet. */
interface Counted {
  attributes: Attributes;
  text: string;
  version: number;
  expiresAt: number | null;
}

const mostWaiting = 10_000;
const mostAtOnce = 200;
const attempts = 60;
const longestPauseMilliseconds = 50;

/**
 * Adds to numbers in entries. An entry is read, added to, and written only if it is still as it was read;
 * otherwise all of it is done again. Those who want the same entry at the same time on this node would
 * only get in each other's way: they line up, and all who have come while one write was under way share
 * the next one, each with a version of its own. A busy counter so costs a write for many increments.
 */
export class Increments {
  readonly #queries: Queries;
  readonly #clock: Clock;
  readonly #mostBytes: number;
  readonly #lines = new Map<string, Waiting[]>();

  constructor(queries: Queries, clock: Clock, mostBytes: number) {
    this.#queries = queries;
    this.#clock = clock;
    this.#mostBytes = mostBytes;
  }

  add(key: EntryKey, increment: Increment): Promise<StateEntry | Problem> {
    return new Promise((resolve, reject) => {
      const name = `${key.organizationId}\0${key.mergedKey}`;
      const line = this.#lines.get(name);
      if (line === undefined) {
        const first = [{ increment, resolve, reject }];
        this.#lines.set(name, first);
        this.#serve(name, key, first);
      } else if (line.length < mostWaiting) line.push({ increment, resolve, reject });
      else reject(new DatabaseBusyError('Too many increments are waiting for one entry'));
    });
  }

  async #serve(name: string, key: EntryKey, line: Waiting[]): Promise<void> {
    while (line.length > 0) {
      const batch = line.splice(0, mostAtOnce);
      try {
        const outcomes = await this.#apply(
          key,
          batch.map(({ increment }) => increment),
        );
        for (const [index, outcome] of outcomes.entries()) batch[index]?.resolve(outcome);
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    this.#lines.delete(name);
  }

  async #apply(key: EntryKey, increments: readonly Increment[]): Promise<(StateEntry | Problem)[]> {
    for (let attempt = 1; attempt <= attempts; attempt += 1) {
      const now = this.#clock.now();
      const found = await findEntry(this.#queries, key.organizationId, key.mergedKey, now);
      const counted = countedOf(found);
      const outcomes = increments.map((increment) => this.#count(key, counted, increment, now));
      if (await this.#write(key, counted, found, now)) return outcomes;
      await delay(Math.random() * Math.min(2 ** attempt, longestPauseMilliseconds));
    }
    throw new DatabaseBusyError('The entry kept being changed by others');
  }

  #count(key: EntryKey, counted: Counted, increment: Increment, now: number): StateEntry | Problem {
    const attributes = increase(counted.attributes, increment);
    if (attributes instanceof Problem) return attributes;
    const text = encodeAttributes(attributes, this.#mostBytes);
    if (text instanceof Problem) return text;
    counted.attributes = attributes;
    counted.text = text;
    counted.version += 1;
    if (increment.ttlInSec !== undefined) counted.expiresAt = expiryOf(now, increment.ttlInSec);
    return entryOf(key, attributes, counted.version, counted.expiresAt);
  }

  async #write(
    key: EntryKey,
    counted: Counted,
    found: FoundEntry | undefined,
    now: number,
  ): Promise<boolean> {
    const { text, version, expiresAt } = counted;
    if (version === (found?.version ?? 0)) return true;
    const entry = { ...key, attributes: text, expiresAt };
    if (found === undefined) return insertEntry(this.#queries, entry, version, now);
    return replaceFound(this.#queries, entry, version, found, now);
  }
}

function countedOf(found: FoundEntry | undefined): Counted {
  if (found === undefined) return { attributes: {}, text: '{}', version: 0, expiresAt: null };
  const { attributes, version, expiresAt } = found;
  return { attributes: decodeAttributes(attributes), text: attributes, version, expiresAt };
}

function increase(attributes: Attributes, { attribute, by }: Increment): Attributes | Problem {
  const present = Object.hasOwn(attributes, attribute) ? attributes[attribute] : 0;
  if (typeof present !== 'number') {
    const message = `is ${kindOf(present)} in the entry and not a number`;
    const detail = `The attribute cannot be added to: ${JSON.stringify(attribute)} ${message}.`;
    return problem('VALIDATION_FAILED', detail, { errors: [{ pointer: '/attribute', message }] });
  }
  const sum = present + by;
  if (!Number.isFinite(sum)) {
    const message = 'makes a number that is too large';
    const detail = `The attribute cannot be added to: ${by} and ${present} ${message}.`;
    return problem('VALIDATION_FAILED', detail, { errors: [{ pointer: '/by', message }] });
  }
  // Defines the property, whatever its name, and leaves it in its place.
  return { ...attributes, [attribute]: sum };
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}
