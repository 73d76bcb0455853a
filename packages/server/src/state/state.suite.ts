import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import type { Database } from '../database/database.ts';
import { DatabaseBusyError } from '../database/errors.ts';
import { organization } from '../database/rows.suite.ts';
import { adjustableClock } from '../platform/clock.ts';
import { Problem } from '../platform/problem.ts';
import type { StateEntry } from './entry.ts';
import { State, type StateLimits } from './state.ts';

const limits: StateLimits = { stateKeyParts: 32, stateKeyBytes: 1024, stateAttributesBytes: 400 * 1024 };
const start = 1_794_700_800_400;

/** What an outcome must be when nothing is wrong. */
function good<T>(outcome: T | Problem): T {
  if (outcome instanceof Problem) assert.fail(outcome.detail);
  return outcome;
}

function refusal(outcome: unknown): Problem {
  assert.ok(outcome instanceof Problem, JSON.stringify(outcome));
  return outcome;
}

/** What state must do on every engine of the database. */
export function stateSuite(
  name: string,
  open: () => Promise<{ database: Database; close(): Promise<void> }>,
): void {
  describe(`state on ${name}`, { timeout: 120_000 }, () => {
    const clock = adjustableClock(start);
    let database: Database;
    let close: () => Promise<void>;
    let state: State;
    /** Another node: it shares nothing but the database. */
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
      await database.query
        .insertInto('organizations')
        .values(organization(`o${count}`))
        .execute();
      return `o${count}`;
    }
    const put = async (keyParts: string[], attributes: Record<string, unknown> = {}, ttlInSec?: number) =>
      good(await state.upsert(organizationId, { keyParts, attributes, ttlInSec }));
    const get = (keyParts: string[]) => other.get(organizationId, keyParts);
    const missing = async (keyParts: string[]) =>
      assert.equal(refusal(await get(keyParts)).code, 'STATE_NOT_FOUND');
    const rows = async () => (await database.query.selectFrom('state_entries').selectAll().execute()).length;

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

    describe('an entry', () => {
      it('is read as it was written, and replaced as a whole', async () => {
        const keyParts = ['user', 'a:b\\', '漢'];
        const attributes = JSON.parse('{"z":[1,{"b":null}],"a":"x","__proto__":{"y":1},"n":1e21}');
        const written = await put(keyParts, attributes);
        assert.deepEqual(written, { keyParts, mergedKey: 'user:a\\:b\\\\:漢', attributes, version: 1 });
        const read = good(await get(keyParts));
        assert.equal(JSON.stringify(read.attributes), JSON.stringify(attributes));
        assert.deepEqual(read, written);
        assert.equal((await put(keyParts, { only: true })).version, 2);
        assert.deepEqual(good(await get(keyParts)).attributes, { only: true });
      });

      it('belongs to its organization', async () => {
        await put(['a'], { mine: true });
        const neighbour = await newOrganization();
        assert.equal(refusal(await state.get(neighbour, ['a'])).code, 'STATE_NOT_FOUND');
        assert.deepEqual(good(await state.list(neighbour, { keyPrefix: [], limit: 10 })).entries, []);
        await state.delete(neighbour, ['a']);
        good(await state.increment(neighbour, { keyParts: ['a'], attribute: 'n' }));
        assert.deepEqual(good(await get(['a'])).attributes, { mine: true });
      });

      it('is gone once deleted, and begins at version 1 again', async () => {
        await put(['a']);
        await put(['a']);
        assert.equal(await state.delete(organizationId, ['a']), undefined);
        await missing(['a']);
        assert.equal(await state.delete(organizationId, ['a']), undefined);
        assert.equal((await put(['a'])).version, 1);
      });

      it('is gone from the second it expires', async () => {
        const { ttlInEpochSec } = await put(['a'], {}, 2);
        assert.equal(ttlInEpochSec, Math.floor(start / 1000) + 2);
        clock.set(ttlInEpochSec * 1000 - 1);
        assert.equal(good(await get(['a'])).ttlInEpochSec, ttlInEpochSec);
        assert.equal((await listAll()).length, 1);
        clock.advance(1);
        await missing(['a']);
        assert.deepEqual(await listAll(), []);
        assert.equal(await rows(), 1, 'it was not swept');
        assert.equal((await put(['a'])).version, 1);
        clock.advance(1_000_000);
        assert.equal(good(await get(['a'])).version, 1);
      });

      it('loses its expiry when it is written without one', async () => {
        await put(['a'], {}, 1);
        assert.equal('ttlInEpochSec' in (await put(['a'])), false);
        clock.advance(5000);
        assert.equal(good(await get(['a'])).version, 2);
      });

      it('that is too large or has no good key is refused and not written', async () => {
        const large = await state.upsert(organizationId, {
          keyParts: ['a'],
          attributes: { text: 'x'.repeat(limits.stateAttributesBytes) },
        });
        assert.equal(refusal(large).code, 'BODY_TOO_LARGE');
        const keyed = await state.upsert(organizationId, { keyParts: ['x'.repeat(1025)], attributes: {} });
        assert.deepEqual(refusal(keyed).errors?.[0]?.pointer, '/keyParts');
        assert.equal(await rows(), 0);
      });
    });

    describe('an expected version', () => {
      const expecting = (expectedVersion: number, attributes = {}) =>
        state.upsert(organizationId, { keyParts: ['a'], attributes, expectedVersion });

      it('lets a write through when it is the version, and names both when not', async () => {
        assert.equal(good(await expecting(0)).version, 1);
        assert.equal(good(await expecting(1)).version, 2);
        for (const wrong of [0, 1, 3, Number.MAX_SAFE_INTEGER - 1]) {
          const problem = refusal(await expecting(wrong, { wrong }));
          assert.equal(problem.code, 'VERSION_MISMATCH');
          assert.match(problem.detail, new RegExp(`version ${wrong} .*version 2\\b`));
        }
        assert.deepEqual(good(await get(['a'])).attributes, {});
        await state.delete(organizationId, ['a']);
        assert.match(refusal(await expecting(2)).detail, /version 2 .*version 0\b/);
        await missing(['a']);
      });

      it('counts an expired entry as none', async () => {
        await put(['a'], {}, 1);
        await put(['a'], {}, 1);
        clock.advance(1000);
        assert.equal(refusal(await expecting(2)).code, 'VERSION_MISMATCH');
        assert.equal(good(await expecting(0)).version, 1);
      });

      it('is met by one of many writers, whichever node they are on', async () => {
        for (let expectedVersion = 0; expectedVersion < 10; expectedVersion += 1) {
          const outcomes = await Promise.all(
            Array.from({ length: 20 }, (_, writer) =>
              (writer % 2 === 0 ? state : other).upsert(organizationId, {
                keyParts: ['a'],
                attributes: { writer },
                expectedVersion,
              }),
            ),
          );
          const won = outcomes.filter((outcome) => !(outcome instanceof Problem));
          assert.equal(won.length, 1);
          assert.deepEqual(won[0], good(await get(['a'])));
          for (const lost of outcomes) {
            if (lost instanceof Problem) assert.match(lost.detail, new RegExp(`${expectedVersion + 1}\\.$`));
          }
        }
      });
    });

    describe('an increment', () => {
      const add = (attribute: string, by?: number, ttlInSec?: number) =>
        state.increment(organizationId, { keyParts: ['a'], attribute, by, ttlInSec });

      it('makes what is missing and leaves the rest as it is', async () => {
        assert.deepEqual(good(await add('n')), {
          keyParts: ['a'],
          mergedKey: 'a',
          attributes: { n: 1 },
          version: 1,
        });
        await put(['a'], { x: { y: [1] }, n: 40, z: null });
        const { attributes, version } = good(await add('n', 2.5));
        assert.equal(JSON.stringify(attributes), '{"x":{"y":[1]},"n":42.5,"z":null}');
        assert.equal(version, 3);
        assert.deepEqual(good(await get(['a'])).attributes, attributes);
        assert.equal(good(await add('m', -3)).attributes.m, -3);
      });

      it('takes any name for what it is', async () => {
        for (const attribute of ['__proto__', 'constructor', 'toString', 'a.b', '"', '\0', '\ud800']) {
          good(await add(attribute));
          const { attributes } = good(await add(attribute));
          assert.equal(Object.getOwnPropertyDescriptor(attributes, attribute)?.value, 2, attribute);
        }
        assert.equal(Reflect.get({}, 'n'), undefined);
        const names = ['__proto__', 'constructor', 'toString', 'a.b', '"', '\0', '\ud800'];
        assert.deepEqual(Object.keys(good(await get(['a'])).attributes), names);
      });

      it('of what is no number, or past all numbers, is refused and changes nothing', async () => {
        const before = await put(['a'], { t: 'x', o: {}, l: [], z: null, b: true, n: Number.MAX_VALUE });
        for (const [attribute, kind] of [
          ['t', 'a string'],
          ['o', 'an object'],
          ['l', 'an array'],
          ['z', 'null'],
          ['b', 'a boolean'],
        ] as const) {
          const { code, detail, errors } = refusal(await add(attribute));
          assert.equal(code, 'VALIDATION_FAILED');
          assert.match(detail, new RegExp(`"${attribute}" is ${kind} `));
          assert.equal(errors?.[0]?.pointer, '/attribute');
        }
        const { code, errors } = refusal(await add('n', Number.MAX_VALUE));
        assert.deepEqual([code, errors?.[0]?.pointer], ['VALIDATION_FAILED', '/by']);
        assert.deepEqual(good(await get(['a'])), before);
      });

      it('that would make the entry too large is refused', async () => {
        await put(['a'], { text: 'x'.repeat(limits.stateAttributesBytes - 20) });
        good(await add('n'));
        assert.equal(refusal(await add('another')).code, 'BODY_TOO_LARGE');
      });

      it('keeps the expiry unless it gives one, and starts anew after it', async () => {
        const { ttlInEpochSec = 0 } = good(await add('n', 1, 2));
        assert.equal(ttlInEpochSec, Math.floor(start / 1000) + 2);
        clock.advance(1000);
        assert.equal(good(await add('n')).ttlInEpochSec, ttlInEpochSec);
        clock.set(ttlInEpochSec * 1000);
        const { attributes, version, ttlInEpochSec: none } = good(await add('n'));
        assert.deepEqual([attributes, version, none], [{ n: 1 }, 1, undefined]);
        assert.equal(good(await add('n', 1, 60)).ttlInEpochSec, ttlInEpochSec + 60);
      });

      it('counts once for each of many at the same time, each with a version of its own', async () => {
        const versions: number[] = [];
        await Promise.all(
          Array.from({ length: 50 }, async (_, worker) => {
            for (let round = 0; round < 20; round += 1) {
              const node = worker % 2 === 0 ? state : other;
              const by = { keyParts: ['a'], attribute: 'n' };
              versions.push(good(await node.increment(organizationId, by)).version);
            }
          }),
        );
        const entry = good(await get(['a']));
        assert.deepEqual([entry.attributes, entry.version], [{ n: 1000 }, 1000]);
        assert.equal(new Set(versions).size, 1000);
      });

      it('is done again when the entry changed after it was read, though its version be the same', async () => {
        const changes = [
          async () => {
            await state.delete(organizationId, ['a']);
            await put(['a'], { n: 100 });
          },
          () => put(['a'], { n: 100 }),
          () => put(['a'], { n: 100 }, 60),
          async () => {
            await state.delete(organizationId, ['a']);
            await put(['a'], { n: 100 }, 60);
          },
        ];
        for (const change of changes) {
          await state.delete(organizationId, ['a']);
          await put(['a'], { n: 7 });
          const between = interrupted(change);
          const { attributes, ttlInEpochSec } = good(
            await between.increment(organizationId, { keyParts: ['a'], attribute: 'n' }),
          );
          assert.deepEqual(attributes, { n: 101 });
          const present = good(await get(['a']));
          assert.deepEqual([present.attributes, present.ttlInEpochSec], [attributes, ttlInEpochSec]);
        }
        await state.delete(organizationId, ['a']);
        const between = interrupted(() => put(['a'], { n: 100 }));
        const made = await between.increment(organizationId, { keyParts: ['a'], attribute: 'n' });
        assert.deepEqual([good(made).attributes, good(made).version], [{ n: 101 }, 2]);
      });

      it('gives up as busy when the entry never stays as it was read', async () => {
        let n = 0;
        const never = interrupted(() => put(['a'], { n: (n += 10) }), 1000);
        await assert.rejects(
          never.increment(organizationId, { keyParts: ['a'], attribute: 'n' }),
          DatabaseBusyError,
        );
        assert.equal(good(await add('n')).attributes.n, n + 1);
      });

      it('that is refused does not keep others in the same line from counting', async () => {
        await put(['a'], { t: 'x' });
        const outcomes = await Promise.all(
          Array.from({ length: 30 }, (_, index) => add(index % 3 === 0 ? 't' : 'n')),
        );
        assert.equal(outcomes.filter((outcome) => outcome instanceof Problem).length, 10);
        assert.deepEqual(good(await get(['a'])).attributes, { t: 'x', n: 20 });
      });
    });

    describe('a list', () => {
      const keys = async (prefix: string[], limit?: number) =>
        (await listAll(prefix, limit)).map((entry) => entry.keyParts);

      it('has the entries that begin with whole parts, by the bytes of their keys', async () => {
        const all = [
          ['a'],
          ['a', 'b'],
          ['a', 'b', 'c'],
          ['a', '漢'],
          ['a-b'],
          ['a!'],
          ['a:'],
          ['a;'],
          ['a\\'],
          ['a:b'],
          ['a\\', 'b'],
          ['ab'],
          ['b', 'a'],
          ['🎈'],
          ['\uffee'],
        ];
        for (const key of all) await put(key);
        const sorted = (await listAll()).map((entry) => entry.mergedKey);
        assert.equal(sorted.length, all.length);
        assert.deepEqual(
          sorted,
          sorted.toSorted((one, next) => Buffer.compare(Buffer.from(one), Buffer.from(next))),
        );
        for (const limit of [1, 2, 1000]) {
          assert.deepEqual(await keys(['a'], limit), [['a'], ['a', 'b'], ['a', 'b', 'c'], ['a', '漢']]);
          assert.deepEqual(await keys(['a', 'b'], limit), [
            ['a', 'b'],
            ['a', 'b', 'c'],
          ]);
          assert.deepEqual(await keys(['a:'], limit), [['a:']]);
          assert.deepEqual(await keys(['a\\'], limit), [['a\\'], ['a\\', 'b']]);
          assert.deepEqual(await keys(['b'], limit), [['b', 'a']]);
          assert.deepEqual(await keys(['c'], limit), []);
          assert.equal((await keys([], limit)).length, all.length);
        }
      });

      it('goes on where it was when its last entry is gone', async () => {
        for (const key of ['a', 'b', 'c']) await put(['p', key]);
        await put(['p']);
        const first = good(await state.list(organizationId, { keyPrefix: ['p'], limit: 1 }));
        assert.deepEqual([first.entries[0]?.mergedKey, first.next], ['p', 'p']);
        await state.delete(organizationId, ['p']);
        await state.delete(organizationId, ['p', 'a']);
        const second = good(
          await state.list(organizationId, { keyPrefix: ['p'], limit: 1, after: first.next }),
        );
        assert.deepEqual([second.entries[0]?.mergedKey, second.next], ['p:b', 'p:b']);
        await state.delete(organizationId, ['p', 'b']);
        const last = good(
          await state.list(organizationId, { keyPrefix: ['p'], limit: 1, after: second.next }),
        );
        assert.deepEqual([last.entries[0]?.mergedKey, last.next], ['p:c', undefined]);
      });

      it('has shorter pages where entries are large, and misses none', async () => {
        const text = 'x'.repeat(limits.stateAttributesBytes - 20);
        const upserts = Array.from({ length: 25 }, (_, index) => ({
          keyParts: ['large', String(index)],
          attributes: { text },
        }));
        assert.deepEqual(await state.upsertMany(organizationId, upserts), Array(25).fill(undefined));
        const page = good(await state.list(organizationId, { keyPrefix: ['large'], limit: 1000 }));
        assert.equal(page.entries.length, 11);
        assert.equal(page.next, page.entries.at(-1)?.mergedKey);
        assert.equal((await keys(['large'])).length, 25);
      });

      it('refuses a prefix that no key can have', async () => {
        const problem = refusal(await state.list(organizationId, { keyPrefix: ['a', '\udfff'], limit: 10 }));
        assert.deepEqual(problem.errors?.[0]?.pointer, '/keyPrefix/1');
      });
    });

    describe('many upserts', () => {
      it('are written together, the last of each key, and without those that are refused', async () => {
        await put(['a', '0'], { old: true });
        const upserts = Array.from({ length: 1203 }, (_, index) => ({
          keyParts: ['a', String(index % 1200)],
          attributes: { index },
          ttlInSec: 60,
        }));
        const broken = { keyParts: [''], attributes: {} };
        const problems = await state.upsertMany(organizationId, [broken, ...upserts]);
        assert.equal(problems[0]?.code, 'VALIDATION_FAILED');
        assert.deepEqual(problems.slice(1), Array(1203).fill(undefined));
        const entries = await listAll(['a']);
        assert.equal(entries.length, 1200);
        const entry = good(await get(['a', '0']));
        assert.deepEqual([entry.attributes, entry.version], [{ index: 1200 }, 2]);
        assert.equal(good(await get(['a', '3'])).version, 1);
        assert.deepEqual(await state.upsertMany(organizationId, []), []);
      });

      it('of the same entries from several nodes do not get in each other’s way', async () => {
        const upserts = Array.from({ length: 600 }, (_, index) => ({
          keyParts: [String(index)],
          attributes: { index },
        }));
        await Promise.all(
          [state, other, state, other].map((node, index) =>
            node.upsertMany(organizationId, index % 2 === 0 ? upserts : upserts.toReversed()),
          ),
        );
        for (const entry of await listAll()) assert.equal(entry.version, 4);
      });
    });

    describe('the sweep', () => {
      it('deletes what has expired and nothing else, at most so many', async () => {
        const upserts = (ttlInSec?: number) =>
          Array.from({ length: 1300 }, (_, index) => ({
            keyParts: [String(ttlInSec), String(index)],
            attributes: {},
            ttlInSec,
          }));
        for (const ttlInSec of [1, 2, undefined]) await state.upsertMany(organizationId, upserts(ttlInSec));
        assert.equal(await state.sweepExpired(), 0);
        clock.advance(1000);
        assert.equal(await state.sweepExpired(700), 700);
        assert.equal(await rows(), 3200);
        const swept = await Promise.all([state.sweepExpired(), other.sweepExpired()]);
        const rest = await state.sweepExpired();
        assert.equal(swept[0] + swept[1] + rest, 600);
        assert.equal(await rows(), 2600);
        assert.equal((await listAll(['2'])).length, 1300);
      });

      it('spares an entry that is written again', async () => {
        for (let round = 0; round < 20; round += 1) {
          await put(['a'], { round }, 1);
          clock.advance(1000);
          const [written] = await Promise.all([put(['a'], { again: round }), other.sweepExpired()]);
          assert.equal(written.version, 1);
          assert.deepEqual(good(await get(['a'])).attributes, { again: round });
        }
      });
    });
  });
}
