import assert from 'node:assert/strict';
import { after, before, beforeEach } from 'node:test';
import type { Database } from '../database/database.ts';
import { organization } from '../database/rows.suite.ts';
import { adjustableClock } from '../platform/clock.ts';
import { Problem } from '../platform/problem.ts';
import type { StateEntry } from './entry.ts';
import { State, type StateLimits } from './state.ts';

export const limits: StateLimits = {
  stateKeyParts: 32,
  stateKeyBytes: 1024,
  stateAttributesBytes: 400 * 1024,
};

/** Not at the begin of a second. */
export const start = 1_794_700_800_400;

export type OpenDatabase = () => Promise<{ database: Database; close(): Promise<void> }>;

/** What an outcome must be when nothing is wrong. */
export function good<T>(outcome: T | Problem): T {
  if (outcome instanceof Problem) assert.fail(outcome.detail);
  return outcome;
}

/** The problem that an outcome must be. */
export function refusal(outcome: unknown): Problem {
  assert.ok(outcome instanceof Problem, JSON.stringify(outcome));
  return outcome;
}

export type StateSite = ReturnType<typeof stateSite>;

/** State on a database that is open while the tests of the calling suite run, empty for each of them. */
export function stateSite(open: OpenDatabase) {
  const clock = adjustableClock(start);
  let database: Database;
  let close: () => Promise<void>;
  let state: State;
  let other: State;
  let organizationId = '';
  let count = 0;
  before(async () => {
    ({ database, close } = await open());
    state = new State({ database, clock, limits });
    other = new State({ database, clock, limits });
  });
  after(() => close());
  beforeEach(async () => {
    clock.set(start);
    await database.query.deleteFrom('state_entries').execute();
    organizationId = await newOrganization();
  });

  async function newOrganization(): Promise<string> {
    count += 1;
    const id = `o${count}`;
    await database.query.insertInto('organizations').values(organization(id)).execute();
    return id;
  }

  async function put(keyParts: string[], attributes: Record<string, unknown> = {}, ttlInSec?: number) {
    return good(await state.upsert(organizationId, { keyParts, attributes, ttlInSec }));
  }

  /** Reads on the other node. */
  function get(keyParts: string[]) {
    return other.get(organizationId, keyParts);
  }

  async function missing(keyParts: string[]): Promise<void> {
    assert.equal(refusal(await get(keyParts)).code, 'STATE_NOT_FOUND');
  }

  /** How many entries are stored, expired ones included. */
  async function rows(): Promise<number> {
    return (await database.query.selectFrom('state_entries').select('version').execute()).length;
  }

  /** A node on which others come between the first queries and what follows them. */
  function interrupted(change: () => Promise<unknown>, times = 1): State {
    let left = times;
    const query = database.query.withPlugin({
      transformQuery: ({ node }) => node,
      transformResult: async ({ result }) => {
        left -= 1;
        if (left >= 0) await change();
        return result;
      },
    });
    return new State({ database: { ...database, query }, clock, limits });
  }

  async function listAll(keyPrefix: string[] = [], limit = 1000): Promise<StateEntry[]> {
    const entries: StateEntry[] = [];
    let next: string | undefined;
    do {
      const page = good(await state.list(organizationId, { keyPrefix, after: next, limit }));
      assert.ok(page.entries.length > 0 || next === undefined, 'no page is empty but a lone one');
      entries.push(...page.entries);
      next = page.next;
    } while (next !== undefined);
    return entries;
  }

  return {
    clock,
    /** The organization of the present test. */
    get organizationId() {
      return organizationId;
    },
    get database() {
      return database;
    },
    get state() {
      return state;
    },
    /** Another node: it shares nothing but the database. */
    get other() {
      return other;
    },
    newOrganization,
    put,
    get,
    missing,
    rows,
    interrupted,
    listAll,
  };
}
