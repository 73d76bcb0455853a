import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Problem } from '../platform/problem.ts';
import { incrementSuite } from './increments.suite.ts';
import { listingSuite } from './listing.suite.ts';
import { good, limits, type OpenDatabase, refusal, start, stateSite } from './state-site.fixture.ts';

/** What state must do on every engine of the database. */
export function stateSuite(name: string, open: OpenDatabase): void {
  describe(`state on ${name}`, { timeout: 120_000 }, () => {
    const site = stateSite(open);
    const { clock, get, listAll, missing, newOrganization, put, rows } = site;

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
        assert.equal(refusal(await site.state.get(neighbour, ['a'])).code, 'STATE_NOT_FOUND');
        assert.deepEqual(good(await site.state.list(neighbour, { keyPrefix: [], limit: 10 })).entries, []);
        await site.state.delete(neighbour, ['a']);
        good(await site.state.increment(neighbour, { keyParts: ['a'], attribute: 'n' }));
        assert.deepEqual(good(await get(['a'])).attributes, { mine: true });
      });

      it('is gone once deleted, and begins at version 1 again', async () => {
        await put(['a']);
        await put(['a']);
        assert.equal(await site.state.delete(site.organizationId, ['a']), undefined);
        await missing(['a']);
        assert.equal(await site.state.delete(site.organizationId, ['a']), undefined);
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
        const large = await site.state.upsert(site.organizationId, {
          keyParts: ['a'],
          attributes: { text: 'x'.repeat(limits.stateAttributesBytes) },
        });
        assert.equal(refusal(large).code, 'BODY_TOO_LARGE');
        const keyed = await site.state.upsert(site.organizationId, {
          keyParts: ['x'.repeat(1025)],
          attributes: {},
        });
        assert.deepEqual(refusal(keyed).errors?.[0]?.pointer, '/keyParts');
        assert.equal(await rows(), 0);
      });
    });
    describe('an expected version', () => {
      const expecting = (expectedVersion: number, attributes = {}) =>
        site.state.upsert(site.organizationId, { keyParts: ['a'], attributes, expectedVersion });

      it('lets a write through when it is the version, and names both when not', async () => {
        assert.equal(good(await expecting(0)).version, 1);
        assert.equal(good(await expecting(1)).version, 2);
        for (const wrong of [0, 1, 3, Number.MAX_SAFE_INTEGER - 1]) {
          const problem = refusal(await expecting(wrong, { wrong }));
          assert.equal(problem.code, 'VERSION_MISMATCH');
          assert.match(problem.detail, new RegExp(`version ${wrong} .*version 2\\b`));
        }
        assert.deepEqual(good(await get(['a'])).attributes, {});
        await site.state.delete(site.organizationId, ['a']);
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
              (writer % 2 === 0 ? site.state : site.other).upsert(site.organizationId, {
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
    describe('many upserts', () => {
      it('are written together, the last of each key, and without those that are refused', async () => {
        await put(['a', '0'], { old: true });
        const upserts = Array.from({ length: 1203 }, (_, index) => ({
          keyParts: ['a', String(index % 1200)],
          attributes: { index },
          ttlInSec: 60,
        }));
        const broken = { keyParts: [''], attributes: {} };
        const problems = await site.state.upsertMany(site.organizationId, [broken, ...upserts]);
        assert.equal(problems[0]?.code, 'VALIDATION_FAILED');
        assert.deepEqual(problems.slice(1), Array(1203).fill(undefined));
        const entries = await listAll(['a']);
        assert.equal(entries.length, 1200);
        const entry = good(await get(['a', '0']));
        assert.deepEqual([entry.attributes, entry.version], [{ index: 1200 }, 2]);
        assert.equal(good(await get(['a', '3'])).version, 1);
        assert.deepEqual(await site.state.upsertMany(site.organizationId, []), []);
      });

      it('are part of a transaction, and go with it', async () => {
        const { database, state, organizationId } = site;
        const upserts = [{ keyParts: ['a'], attributes: { n: 1 } }];
        const failing = database.transaction(async (transaction) => {
          await state.writeWithin(transaction, organizationId, upserts);
          throw new Error('no further');
        });
        await assert.rejects(failing, /no further/);
        await missing(['a']);
        await database.transaction((transaction) => state.writeWithin(transaction, organizationId, upserts));
        assert.deepEqual(good(await get(['a'])).attributes, { n: 1 });
      });

      it('can be checked without being written', async () => {
        const { state, organizationId } = site;
        assert.equal(state.check(organizationId, { keyParts: ['a'], attributes: {} }), undefined);
        const refused = state.check(organizationId, { keyParts: ['a', ''], attributes: {} });
        assert.deepEqual(refusal(refused).errors?.[0]?.pointer, '/keyParts/1');
        assert.equal(await rows(), 0);
      });

      it('of the same entries from several nodes do not get in each other’s way', async () => {
        const upserts = Array.from({ length: 600 }, (_, index) => ({
          keyParts: [String(index)],
          attributes: { index },
        }));
        await Promise.all(
          [site.state, site.other, site.state, site.other].map((node, index) =>
            node.upsertMany(site.organizationId, index % 2 === 0 ? upserts : upserts.toReversed()),
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
        for (const ttlInSec of [1, 2, undefined])
          await site.state.upsertMany(site.organizationId, upserts(ttlInSec));
        assert.equal(await site.state.sweepExpired(), 0);
        clock.advance(1000);
        assert.equal(await site.state.sweepExpired(700), 700);
        assert.equal(await rows(), 3200);
        const swept = await Promise.all([site.state.sweepExpired(), site.other.sweepExpired()]);
        const rest = await site.state.sweepExpired();
        assert.equal(swept[0] + swept[1] + rest, 600);
        assert.equal(await rows(), 2600);
        assert.equal((await listAll(['2'])).length, 1300);
      });

      it('spares an entry that is written again', async () => {
        for (let round = 0; round < 20; round += 1) {
          await put(['a'], { round }, 1);
          clock.advance(1000);
          const [written] = await Promise.all([put(['a'], { again: round }), site.other.sweepExpired()]);
          assert.equal(written.version, 1);
          assert.deepEqual(good(await get(['a'])).attributes, { again: round });
        }
      });
    });

    incrementSuite(site);
    listingSuite(site);
  });
}
