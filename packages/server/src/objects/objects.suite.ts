import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { InvalidKeyError } from './key.ts';
import { listingSuite } from './listing.suite.ts';
import {
  KeyConflictError,
  LengthMismatchError,
  type ObjectStore,
  RangeNotSatisfiableError,
} from './objects.ts';
import { signedUrlSuite } from './signed.suite.ts';

/** A store under test, empty, with signed URLs that can be fetched, and how to read those. */
export interface StoreUnderTest {
  store: ObjectStore;
  /** The query parameter of a signed URL that holds its expiry. */
  expiryParameter: string;
  signatureParameter: string;
  stop(): Promise<void>;
}

export async function readObject(store: ObjectStore, key: string): Promise<string | undefined> {
  const object = await store.get(key);
  return object === undefined ? undefined : (await buffer(object.body)).toString();
}

const hostileKeys = [
  '',
  '/',
  '/etc/passwd',
  '.',
  '..',
  '../outside',
  'a/../../outside',
  'a/..',
  'a/./b',
  'a//b',
  'a/',
  'a/.hidden',
  'a\\..\\b',
  'a/%2e%2e/b',
  'a%2fb',
  'a\0b',
  'a\nb',
  'a\u007fb',
  'a b',
  'é',
  '\u2025/a',
  'a/\ud800',
  'x'.repeat(251),
  `${'x/'.repeat(512)}xx`,
];

/** What every object store does. Each adapter runs it against the real thing. */
export function objectStoreSuite(name: string, makeStore: () => Promise<StoreUnderTest>): void {
  describe(name, { timeout: 120_000 }, () => {
    let under: StoreUnderTest;
    let store: ObjectStore;

    before(async () => {
      under = await makeStore();
      store = under.store;
    });
    after(() => under?.stop());

    test('is usable', () => store.check());

    test('gives back what was put, and what replaced it', async () => {
      const first = await store.put('put/object.bin', Buffer.from('first'));
      assert.equal(first.size, 5);
      assert.equal(await readObject(store, 'put/object.bin'), 'first');
      const second = await store.put(
        'put/object.bin',
        Readable.from([Buffer.from('sec'), Buffer.from('ond')]),
      );
      assert.equal(second.size, 6);
      assert.notEqual(second.etag, first.etag);
      assert.equal(await readObject(store, 'put/object.bin'), 'second');
    });

    test('describes an object', async () => {
      const began = Date.now();
      const { etag } = await store.put('head/object', Buffer.from('12345'));
      const summary = await store.head('head/object');
      assert.equal(summary?.size, 5);
      assert.equal(summary?.etag, etag);
      assert.match(etag, /^".+"$/);
      assert.ok(Math.abs((summary?.lastModified ?? 0) - began) < 60_000);
    });

    test('holds an empty object', async () => {
      assert.equal((await store.put('empty', Readable.from([]))).size, 0);
      assert.equal((await store.head('empty'))?.size, 0);
      assert.equal(await readObject(store, 'empty'), '');
      await assert.rejects(store.get('empty', { start: 0 }), RangeNotSatisfiableError);
    });

    test('holds keys of the greatest length and every safe character', async () => {
      const longest = `${'x'.repeat(250)}/`.repeat(3) + 'y'.repeat(240);
      for (const key of [longest, 'year=2026/month=11/part-0_1.A.parquet', '-a/_b/=c/d.']) {
        await store.put(key, Buffer.from(key));
        assert.equal(await readObject(store, key), key);
      }
    });

    test('has nothing where nothing was put, and deleting that is fine', async () => {
      await store.put('gone/here', Buffer.from('x'));
      for (const key of ['gone/nothing', 'gone', 'gone/here/below', 'nowhere/at/all']) {
        assert.equal(await store.get(key), undefined);
        assert.equal(await store.head(key), undefined);
        await store.delete(key);
      }
      assert.equal(await readObject(store, 'gone/here'), 'x');
      await store.delete('gone/here');
      await store.delete('gone/here');
      assert.equal(await store.head('gone/here'), undefined);
    });

    test('gives the part of an object that is asked for', async () => {
      await store.put('range', Buffer.from('0123456789'));
      const part = async (start: number, end?: number) => {
        const object = await store.get('range', end === undefined ? { start } : { start, end });
        assert.ok(object);
        assert.equal(object.size, 10);
        const text = (await buffer(object.body)).toString();
        assert.equal(object.length, text.length);
        return text;
      };
      assert.equal(await part(2, 4), '234');
      assert.equal(await part(0, 0), '0');
      assert.equal(await part(7), '789');
      assert.equal(await part(8, 1_000_000), '89');
      await assert.rejects(store.get('range', { start: 10 }), RangeNotSatisfiableError);
      await assert.rejects(store.get('range', { start: 4, end: 3 }), RangeNotSatisfiableError);
    });

    test('takes a stream of unknown length that is larger than one part', async () => {
      const pieces = Array.from({ length: 21 }, () => randomBytes(1_000_003));
      const hash = createHash('sha256');
      for (const piece of pieces) hash.update(piece);
      const stored = await store.put('large', Readable.from(pieces));
      assert.equal(stored.size, 21 * 1_000_003);
      const object = await store.get('large');
      assert.ok(object);
      const read = createHash('sha256');
      for await (const chunk of object.body) read.update(chunk);
      assert.equal(read.digest('hex'), hash.digest('hex'));
    });

    test('keeps nothing of a write that fails, and the object that was there', async () => {
      async function* failing(bytes: number) {
        for (let sent = 0; sent < bytes; sent += 1_000_000) yield Buffer.alloc(1_000_000);
        throw new Error('the source broke');
      }
      await store.put('failing/old', Buffer.from('old'));
      for (const bytes of [1_000_000, 20_000_000]) {
        await assert.rejects(store.put('failing/new', Readable.from(failing(bytes))), /the source broke/);
        await assert.rejects(store.put('failing/old', Readable.from(failing(bytes))), /the source broke/);
      }
      assert.equal(await store.head('failing/new'), undefined);
      assert.equal(await readObject(store, 'failing/old'), 'old');
    });

    test('keeps nothing of a write that is aborted', async () => {
      const controller = new AbortController();
      const body = new Readable({ read() {} });
      body.push('some');
      const writing = store.put('aborted', body, { signal: controller.signal });
      controller.abort();
      await assert.rejects(writing, { name: 'AbortError' });
      assert.equal(await store.head('aborted'), undefined);
      assert.ok(body.destroyed);
    });

    test('fails, and nothing else does, when the body has broken before it is read', async () => {
      const body = new Readable({ read() {} });
      const writing = store.put('broken', body);
      body.destroy(new Error('the source broke early'));
      await assert.rejects(writing, /the source broke early/);
      assert.equal(await store.head('broken'), undefined);
    });

    test('refuses a body of another length than was declared', async () => {
      for (const contentLength of [0, 4, 6, 9_000_000]) {
        const body = Buffer.from('12345');
        await assert.rejects(store.put('declared', body, { contentLength }), LengthMismatchError);
        assert.deepEqual(await store.create('declared', Readable.from([body]), { contentLength }), {
          outcome: 'length-mismatch',
        });
      }
      const large = Readable.from([Buffer.alloc(9_000_000), Buffer.alloc(9_000_000)]);
      const outcome = await store.create('declared', large, { contentLength: 18_000_001 });
      assert.deepEqual(outcome, { outcome: 'length-mismatch' });
      assert.equal(await store.head('declared'), undefined);
    });

    test('creates an object once', async () => {
      const large = () => Readable.from([Buffer.alloc(9_000_000, 'a'), Buffer.alloc(1, 'b')]);
      for (const [key, body, contentLength] of [
        ['once/small', () => Buffer.from('12345'), 5],
        ['once/large', large, 9_000_001],
      ] as const) {
        const created = await store.create(key, body(), { contentLength });
        assert.equal(created.outcome, 'created');
        assert.deepEqual(await store.create(key, body(), { contentLength }), { outcome: 'exists' });
        assert.equal((await store.head(key))?.size, contentLength);
      }
    });

    test('lets exactly one of several that create at the same time win', async () => {
      const bodies = Array.from({ length: 8 }, (_, index) => `body-${index}`);
      const outcomes = await Promise.all(
        bodies.map((body) =>
          store.create('once/raced', Readable.from([Buffer.from(body)]), { contentLength: 6 }),
        ),
      );
      const winners = outcomes.flatMap((each, index) => (each.outcome === 'created' ? [bodies[index]] : []));
      assert.equal(winners.length, 1);
      assert.equal(outcomes.filter((each) => each.outcome === 'exists').length, 7);
      assert.equal(await readObject(store, 'once/raced'), winners[0]);
    });

    test('never lets a key damage an object that would be its directory', async () => {
      const attempt = async (key: string) => {
        try {
          await store.put(key, Buffer.from(key));
          assert.equal(await readObject(store, key), key);
        } catch (error) {
          assert.ok(error instanceof KeyConflictError, String(error));
          assert.equal(await store.head(key), undefined);
        }
      };
      await store.put('conflict/a', Buffer.from('object'));
      await attempt('conflict/a/b');
      await attempt('conflict/a/b/c');
      assert.equal(await readObject(store, 'conflict/a'), 'object');
      await store.put('conflict/d/e', Buffer.from('object'));
      await attempt('conflict/d');
      assert.equal(await readObject(store, 'conflict/d/e'), 'object');
    });

    test('refuses every key that could leave its place', async () => {
      const expiresAt = Date.now() + 60_000;
      for (const key of hostileKeys) {
        const refusals: Promise<unknown>[] = [
          store.put(key, Buffer.from('x')),
          store.create(key, Buffer.from('x'), { contentLength: 1 }),
          store.get(key),
          store.head(key),
          store.delete(key),
          store.signedGet(key, { expiresAt }),
          store.signedPut(key, { expiresAt, contentLength: 1 }),
        ];
        if (key !== '' && key !== 'a/') {
          refusals.push(store.list(key, { limit: 1 }), store.list('', { after: key, limit: 1 }));
        }
        for (const refusal of refusals) await assert.rejects(refusal, InvalidKeyError, JSON.stringify(key));
      }
    });

    listingSuite(() => under);
    signedUrlSuite(() => under);
  });
}
