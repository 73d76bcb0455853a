import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Ledger, type StoredMessage } from './ledger.ts';
import { type Message, type Request, textOf } from './publisher.ts';

const startedAt = 1_000;
const accepted = { kind: 'acknowledged', accepted: 1, duplicates: 0 } as const;
const duplicate = { kind: 'acknowledged', accepted: 0, duplicates: 1 } as const;
const unknown = { kind: 'unknown' } as const;

function message(sequence: number): Message {
  return { id: `m${sequence}`, key: 'a key', sequence, filling: 3 };
}

function requestOf(sequence: number): Request {
  return { form: 'message', topicName: 'orders', messages: [message(sequence)] };
}

function stored(sequence: number, offset: number, more: Partial<StoredMessage> = {}): StoredMessage {
  const { id, key } = message(sequence);
  const text = textOf(message(sequence));
  return { topicName: 'orders', partition: 4, offset, key, id, acceptedAt: startedAt, text, ...more };
}

describe('the books of the crash test', () => {
  function books(): Ledger {
    const ledger = new Ledger();
    for (const sequence of [1, 2]) ledger.note(requestOf(sequence), startedAt, accepted);
    return ledger;
  }

  it('find nothing wrong when all is there in order', () => {
    assert.deepEqual(books().violations([stored(1, 1), stored(2, 2)]), []);
  });

  const wrong: [string, StoredMessage[], RegExp][] = [
    ['a loss', [stored(1, 1)], /m2 was acknowledged and is lost/],
    ['a message that is there twice', [stored(1, 1), stored(2, 2), stored(2, 3)], /is there 2 times/],
    ['a change of order', [stored(2, 1), stored(1, 2)], /m1 comes after m2/],
    ['a key in two partitions', [stored(1, 1), stored(2, 1, { partition: 5 })], /partitions 4 and 5/],
    ['another body', [stored(1, 1), stored(2, 2, { text: '{}' })], /another body/],
    ['another topic', [stored(1, 1), stored(2, 2, { topicName: 'clicks' })], /m2 of orders is in clicks/],
    ['what nobody sent', [stored(1, 1), stored(2, 2), stored(3, 3)], /m3 was never sent/],
  ];
  for (const [what, log, sentence] of wrong) {
    it(`find ${what}`, () => {
      assert.match(books().violations(log).join('\n'), sentence);
    });
  }

  it('take a message of unknown fate as it is, there or not, but once', () => {
    const ledger = new Ledger();
    ledger.note(requestOf(1), startedAt, unknown);
    assert.deepEqual(ledger.violations([]), []);
    assert.deepEqual(ledger.violations([stored(1, 1)]), []);
    assert.match(ledger.violations([stored(1, 1), stored(1, 2)]).join(), /is there 2 times/);
  });

  it('find out whether a message was truly there before it was called a duplicate', () => {
    const before = [stored(1, 1, { acceptedAt: startedAt })];
    const after = [stored(1, 1, { acceptedAt: startedAt + 10 })];
    for (const [answered, truth, lie] of [
      [duplicate, before, after],
      [accepted, after, before],
    ] as const) {
      const ledger = new Ledger();
      ledger.note(requestOf(1), startedAt, unknown);
      ledger.note(requestOf(1), startedAt + 5, answered);
      assert.deepEqual(ledger.violations(truth), []);
      assert.match(ledger.violations(lie).join(), /the answer spoke of/);
    }
  });

  it('expect what was acknowledged to be called a duplicate when it is repeated', () => {
    const ledger = books();
    ledger.note(requestOf(1), startedAt, accepted);
    assert.match(ledger.violations([stored(1, 1), stored(2, 2)]).join(), /the answer spoke of 0/);
  });
});
