import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { DatabaseBusyError } from '../database/errors.ts';
import { Problem } from '../platform/problem.ts';
import { good, limits, refusal, type StateSite, start } from './state-site.fixture.ts';

/** What increments must do on every engine of the database. */
export function incrementSuite(site: StateSite): void {
  const { clock, get, interrupted, put } = site;

  describe('an increment', () => {
    const add = (attribute: string, by?: number, ttlInSec?: number) =>
      site.state.increment(site.organizationId, { keyParts: ['a'], attribute, by, ttlInSec });

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
            const node = worker % 2 === 0 ? site.state : site.other;
            const by = { keyParts: ['a'], attribute: 'n' };
            versions.push(good(await node.increment(site.organizationId, by)).version);
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
          await site.state.delete(site.organizationId, ['a']);
          await put(['a'], { n: 100 });
        },
        () => put(['a'], { n: 100 }),
        () => put(['a'], { n: 100 }, 60),
        async () => {
          await site.state.delete(site.organizationId, ['a']);
          await put(['a'], { n: 100 }, 60);
        },
      ];
      for (const change of changes) {
        await site.state.delete(site.organizationId, ['a']);
        await put(['a'], { n: 7 });
        const between = interrupted(change);
        const { attributes, ttlInEpochSec } = good(
          await between.increment(site.organizationId, { keyParts: ['a'], attribute: 'n' }),
        );
        assert.deepEqual(attributes, { n: 101 });
        const present = good(await get(['a']));
        assert.deepEqual([present.attributes, present.ttlInEpochSec], [attributes, ttlInEpochSec]);
      }
      await site.state.delete(site.organizationId, ['a']);
      const between = interrupted(() => put(['a'], { n: 100 }));
      const made = await between.increment(site.organizationId, { keyParts: ['a'], attribute: 'n' });
      assert.deepEqual([good(made).attributes, good(made).version], [{ n: 101 }, 2]);
    });

    it('gives up as busy when the entry never stays as it was read', async () => {
      let n = 0;
      const never = interrupted(() => {
        n += 10;
        return put(['a'], { n });
      }, 1000);
      await assert.rejects(
        never.increment(site.organizationId, { keyParts: ['a'], attribute: 'n' }),
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
}
