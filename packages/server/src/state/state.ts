import type { Database } from '../database/database.ts';
import type { Clock } from '../platform/clock.ts';
import { Problem, problem } from '../platform/problem.ts';
import { type Attributes, encodeAttributes } from './attributes.ts';
import { type EntryKey, entryOf, expiryOf, foundEntryOf, type StateEntry } from './entry.ts';
import { Increments } from './increments.ts';
import { checkedKey, type KeyLimits } from './key.ts';
import {
  deleteEntry,
  deleteExpired,
  findEntry,
  insertEntry,
  listEntries,
  putEntries,
  putEntry,
  type Queries,
  replaceVersion,
  type WrittenEntry,
} from './state-store.ts';

export interface StateLimits extends KeyLimits {
  /** Bytes of the attributes of one entry, as JSON. */
  readonly stateAttributesBytes: number;
}

export interface StateOptions {
  readonly database: Database;
  readonly clock: Clock;
  readonly limits: StateLimits;
}

/** An entry to be written. */
export interface Upsert {
  readonly keyParts: string[];
  /** Replaces all attributes. */
  readonly attributes: Attributes;
  /** Without one the entry stays until it is deleted, also when it was to expire before. */
  readonly ttlInSec?: number | undefined;
}

export interface StateList {
  /** Whole leading parts of the keys; none for all entries. */
  readonly keyPrefix: readonly string[];
  /** The merged key of the last entry of the page before. */
  readonly after?: string | undefined;
  readonly limit: number;
}

export interface StatePage {
  readonly entries: StateEntry[];
  /** Where the next page begins: given when there are more entries. */
  readonly next: string | undefined;
}

/** Once a page holds so many bytes of attributes it has no more entries, though more were asked for. */
const pageBytes = 4 * 1024 * 1024;
/** PostgreSQL and SQLite take more, but one statement should not keep others waiting for long. */
const putAtOnce = 500;
const sweepAtOnce = 500;
const sweepAtMost = 100_000;
/** How often to look again when the version that was in the way is no longer in the way. */
const expectations = 3;

/**
 * Keyed entries of organizations: a key of several parts, any JSON object, and a version.
 *
 * Every operation is one statement, so that it happens at once or not at all whoever else writes, on any
 * node. An entry that has expired does not exist for any of them, whether or not it was swept. Nothing is
 * kept in memory.
 */
export class State {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #limits: StateLimits;
  readonly #increments: Increments;

  constructor({ database, clock, limits }: StateOptions) {
    this.#database = database;
    this.#clock = clock;
    this.#limits = limits;
    this.#increments = new Increments(database.query, clock, limits.stateAttributesBytes);
  }

  async get(organizationId: string, keyParts: string[]): Promise<StateEntry | Problem> {
    const key = this.#keyOf(organizationId, keyParts);
    if (key instanceof Problem) return key;
    const found = await findEntry(this.#database.query, organizationId, key.mergedKey, this.#clock.now());
    return found === undefined ? problem('STATE_NOT_FOUND') : foundEntryOf(key, found);
  }

  /**
   * A page of entries, sorted by the bytes of their merged keys. Because it goes on behind a key and not
   * behind a number of entries, what is there all the time is listed once, whatever comes and goes.
   */
  async list(organizationId: string, { keyPrefix, after, limit }: StateList): Promise<StatePage | Problem> {
    const prefix = checkedKey(keyPrefix, 'keyPrefix', this.#limits);
    if (prefix instanceof Problem) return prefix;
    const listing = {
      organizationId,
      prefix: keyPrefix.length === 0 ? undefined : prefix,
      after,
      mostEntries: limit,
      mostBytes: pageBytes,
    };
    const { entries, more } = await listEntries(this.#database.query, listing, this.#clock.now());
    return {
      entries: entries.map((entry) => foundEntryOf(entry, entry)),
      next: more ? entries.at(-1)?.mergedKey : undefined,
    };
  }

  /**
   * Writes an entry. With an expected version only over an entry of that version, or with 0 only where
   * there is none; of several who expect the same one wins.
   */
  async upsert(
    organizationId: string,
    { expectedVersion, ...upsert }: Upsert & { readonly expectedVersion?: number | undefined },
  ): Promise<StateEntry | Problem> {
    const now = this.#clock.now();
    const entry = this.#written(organizationId, upsert, now);
    if (entry instanceof Problem) return entry;
    const version =
      expectedVersion === undefined
        ? await putEntry(this.#database.query, entry, now)
        : await this.#putExpecting(entry, expectedVersion, now);
    if (version instanceof Problem) return version;
    return entryOf(entry, upsert.attributes, version, entry.expiresAt);
  }

  /**
   * Writes many entries, all of them at once: a reader sees none or all. Of several with the same key the
   * last one counts, as one change. An entry that cannot be written is answered with its problem, in the
   * place in which it was given, and left out.
   */
  async upsertMany(organizationId: string, upserts: readonly Upsert[]): Promise<(Problem | undefined)[]> {
    // What fits one statement needs no transaction.
    if (upserts.length <= putAtOnce) return this.writeWithin(this.#database.query, organizationId, upserts);
    return this.#database.transaction((transaction) =>
      this.writeWithin(transaction, organizationId, upserts),
    );
  }

  /** Writes many entries like `upsertMany`, together with whatever else a transaction does. */
  async writeWithin(
    queries: Queries,
    organizationId: string,
    upserts: readonly Upsert[],
  ): Promise<(Problem | undefined)[]> {
    const now = this.#clock.now();
    const problems: (Problem | undefined)[] = [];
    const entries = new Map<string, WrittenEntry>();
    for (const upsert of upserts) {
      const entry = this.#written(organizationId, upsert, now);
      problems.push(entry instanceof Problem ? entry : undefined);
      if (!(entry instanceof Problem)) entries.set(entry.mergedKey, entry);
    }
    // In one order, so that two who write the same entries never wait for each other.
    const sorted = [...entries.values()].sort((one, other) => (one.mergedKey < other.mergedKey ? -1 : 1));
    for (let start = 0; start < sorted.length; start += putAtOnce) {
      await putEntries(queries, sorted.slice(start, start + putAtOnce), now);
    }
    return problems;
  }

  /** What keeps an entry from being written, without writing it. */
  check(organizationId: string, upsert: Upsert): Problem | undefined {
    const entry = this.#written(organizationId, upsert, this.#clock.now());
    return entry instanceof Problem ? entry : undefined;
  }

  /** Deletes an entry, whether or not there is one. */
  async delete(organizationId: string, keyParts: string[]): Promise<Problem | undefined> {
    const key = this.#keyOf(organizationId, keyParts);
    if (key instanceof Problem) return key;
    await deleteEntry(this.#database.query, organizationId, key.mergedKey);
    return undefined;
  }

  /**
   * Adds to a number of an entry and leaves the rest of it as it is. The entry and the number are made
   * when they are missing. Without a time to live the entry expires when it was to expire anyway.
   */
  async increment(
    organizationId: string,
    increment: {
      readonly keyParts: string[];
      readonly attribute: string;
      readonly by?: number | undefined;
      readonly ttlInSec?: number | undefined;
    },
  ): Promise<StateEntry | Problem> {
    const key = this.#keyOf(organizationId, increment.keyParts);
    if (key instanceof Problem) return key;
    const { attribute, by = 1, ttlInSec } = increment;
    return this.#increments.add(key, { attribute, by, ttlInSec });
  }

  /** Deletes entries that have expired, a few at a time and at most so many, and answers how many. */
  async sweepExpired(limit = sweepAtMost): Promise<number> {
    const now = this.#clock.now();
    let swept = 0;
    while (swept < limit) {
      const most = Math.min(sweepAtOnce, limit - swept);
      const deleted = await deleteExpired(this.#database, most, now);
      swept += deleted;
      if (deleted < most) break;
    }
    return swept;
  }

  async #putExpecting(entry: WrittenEntry, expected: number, now: number): Promise<number | Problem> {
    const { query } = this.#database;
    let present = expected;
    for (let round = 0; round < expectations && present === expected; round += 1) {
      const written =
        expected === 0
          ? await insertEntry(query, entry, 1, now)
          : await replaceVersion(query, entry, expected, now);
      if (written) return expected + 1;
      const found = await findEntry(query, entry.organizationId, entry.mergedKey, now);
      present = found?.version ?? 0;
    }
    const state = present === 0 ? 'version 0, for there is no such entry' : `version ${present}`;
    return problem(
      'VERSION_MISMATCH',
      `The entry was expected to have version ${expected} and has ${state}.`,
    );
  }

  #keyOf(organizationId: string, keyParts: string[]): EntryKey | Problem {
    const mergedKey = checkedKey(keyParts, 'keyParts', this.#limits);
    return mergedKey instanceof Problem ? mergedKey : { organizationId, keyParts, mergedKey };
  }

  #written(
    organizationId: string,
    { keyParts, attributes, ttlInSec }: Upsert,
    now: number,
  ): (WrittenEntry & EntryKey) | Problem {
    const key = this.#keyOf(organizationId, keyParts);
    if (key instanceof Problem) return key;
    const text = encodeAttributes(attributes, this.#limits.stateAttributesBytes);
    if (text instanceof Problem) return text;
    return { ...key, attributes: text, expiresAt: expiryOf(now, ttlInSec) };
  }
}
