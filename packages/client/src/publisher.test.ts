import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Publisher } from './publisher.ts';

const accepted = (count: number) => ({ accepted: count, duplicates: 0, rejected: 0, errors: [] });
const countOf = (lines: string) => lines.split('\n').length;

/** Sends that are answered when the test says so. */
function heldSends() {
  const held: { lines: string; answer(): void; fail(): void }[] = [];
  const send = (lines: string) =>
    new Promise<ReturnType<typeof accepted>>((resolve, reject) => {
      held.push({
        lines,
        answer: () => resolve(accepted(countOf(lines))),
        fail: () => reject(new Error('no answer')),
      });
    });
  return { held, send };
}

describe('a publisher', () => {
  it('sends batches that are bounded in messages and in characters', async () => {
    const sizes: number[] = [];
    const publisher = new Publisher(
      async (lines) => {
        sizes.push(countOf(lines));
        return accepted(countOf(lines));
      },
      { batchSize: 10, batchCharacters: 100 },
    );
    for (let index = 0; index < 25; index += 1) await publisher.publish({ index });
    await publisher.publish({ text: 'x'.repeat(200) });
    await publisher.publish({ text: 'y'.repeat(200) });
    assert.deepEqual(await publisher.flush(), { accepted: 27, duplicates: 0, rejected: 0 });
    assert.ok(
      sizes.every((size) => size <= 10),
      String(sizes),
    );
    assert.deepEqual(sizes.slice(-2), [1, 1]);
  });

  it('waits when as much is pending as may be, in messages and in characters', async () => {
    for (const bound of [{ mostPending: 2 }, { mostPendingCharacters: 20 }]) {
      const { held, send } = heldSends();
      const publisher = new Publisher(send, { batchSize: 2, concurrency: 1, ...bound });
      await publisher.publish({ number: 1 });
      await publisher.publish({ number: 2 });
      let taken = false;
      const third = publisher.publish({ number: 3 }).then(() => {
        taken = true;
      });
      await new Promise((resolve) => setImmediate(resolve));
      assert.equal(taken, false);
      held[0]?.answer();
      await third;
      const ended = publisher.abandon();
      for (const each of held) each.answer();
      await ended;
    }
  });

  it('tells how far it is after every request, also while everything is waited for', async () => {
    const { held, send } = heldSends();
    const told: number[] = [];
    const publisher = new Publisher(send, {
      batchSize: 2,
      concurrency: 1,
      onProgress: (totals) => told.push(totals.accepted),
    });
    for (let index = 0; index < 4; index += 1) await publisher.publish({ index });
    const flushed = publisher.flush();
    assert.deepEqual(told, []);
    held[0]?.answer();
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(told, [2]);
    held[1]?.answer();
    await flushed;
    assert.deepEqual(told, [2, 4]);
  });

  it('abandons what was not sent and knows what became of the rest', async () => {
    const { held, send } = heldSends();
    const publisher = new Publisher(send, { batchSize: 2, concurrency: 1 });
    for (let index = 0; index < 5; index += 1) await publisher.publish({ index });
    const ended = publisher.abandon();
    held[0]?.answer();
    assert.deepEqual(await ended, { accepted: 2, duplicates: 0, rejected: 0 });
    assert.equal(held.length, 1);
    assert.deepEqual(await publisher.flush(), { accepted: 2, duplicates: 0, rejected: 0 });
  });

  it('sends nothing after a request that failed, where order matters', async () => {
    const { held, send } = heldSends();
    const publisher = new Publisher(send, { batchSize: 1, concurrency: 1, stopOnFailure: true });
    for (let index = 0; index < 3; index += 1) await publisher.publish({ index });
    const flushed = publisher.flush();
    held[0]?.fail();
    await assert.rejects(flushed, /no answer/);
    assert.equal(held.length, 1);
  });

  it('tells which message was refused by its place in all', async () => {
    const places: [number, unknown][] = [];
    const publisher = new Publisher(
      async (lines) => ({
        ...accepted(countOf(lines) - 1),
        rejected: 1,
        errors: [{ index: 0, code: 'BAD', message: 'is bad' }],
      }),
      { batchSize: 2, concurrency: 1, onRejected: ({ index, message }) => places.push([index, message]) },
    );
    for (let place = 0; place < 6; place += 1) await publisher.publish({ place });
    const { rejected } = await publisher.flush();
    assert.equal(places.length, rejected);
    assert.ok(rejected > 1);
    for (const [place, message] of places) assert.deepEqual(message, { place });
  });
});
