import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { good, type OpenDatabase, taskSite } from '../task-site.fixture.ts';

interface Batch {
  readonly Records: readonly {
    readonly messageId: string;
    readonly body: string;
    readonly attributes: { readonly ApproximateReceiveCount: string; readonly MessageGroupId: string };
  }[];
}

/** What tasks get of their streams, on any database. */
export function streamsSuite(engine: string, open: OpenDatabase): void {
  describe(`streams of tasks in ${engine}`, { timeout: 120_000 }, () => {
    const site = taskSite(open);
    afterEach(() => {
      Reflect.deleteProperty(globalThis, 'onEvent');
    });

    /** Notes the texts that are handled; what the function answers is the answer of the task. */
    function handled(answer: (batch: Batch) => unknown = () => null): string[] {
      const texts: string[] = [];
      Reflect.set(globalThis, 'onEvent', (batch: Batch) => {
        const answered = answer(batch);
        for (const record of batch.Records) texts.push(record.body);
        return answered;
      });
      return texts;
    }
    const numbers = (count: number) => Array.from({ length: count }, (_value, index) => String(index));

    it('are read from their beginning, in order for each key, and only by those who name them', async () => {
      const node = await site.start();
      const texts = handled();
      await site.publish('ada', numbers(50));
      await site.publish('ada', ['of another stream'], 'payments');
      good(await site.deploy(node, 'enrich', undefined, { batchSize: 7 }));
      await site.until('all are handled', () => texts.length === 50);
      assert.deepEqual(texts, numbers(50));
    });

    it('try again only what the task names, and keep what fails for good as dead letters', async () => {
      const node = await site.start();
      const address = site.addressOf('enrich');
      let isMended = false;
      const attempts: string[] = [];
      const texts = handled(({ Records }) => {
        const poison = Records.find((record) => record.body === 'poison' && !isMended);
        if (poison === undefined) return null;
        attempts.push(poison.attributes.ApproximateReceiveCount);
        return { batchItemFailures: [{ itemIdentifier: poison.messageId }] };
      });
      good(await site.deploy(node, 'enrich', undefined, { maxAttempts: 2 }));
      await site.publish('ada', ['a1']);
      await site.publish('eve', ['poison', 'e2']);
      await site.publish('bob', ['b1']);
      const letters = async () => good(await node.deadLetters.list(address, undefined, 10)).entries;
      await site.until('it is a dead letter', async () => (await letters()).length === 1);
      const [letter] = await letters();
      assert.deepEqual(
        [
          letter?.topic,
          letter?.stream,
          letter?.messageKey,
          letter?.messageId,
          letter?.body,
          letter?.attempts,
        ],
        ['orders', 'orders', 'eve', 'eve:poison', 'poison', 2],
      );
      assert.deepEqual(attempts, ['1', '2']);
      await site.until('its key goes on', () => texts.includes('e2'));
      isMended = true;
      assert.equal(good(await node.deadLetters.redrive(address, [letter?.id ?? ''])), 1);
      await site.until('it is handled', () => texts.filter((text) => text === 'poison').length === 3);
      await site.until('it is no dead letter any more', async () => (await letters()).length === 0);
      assert.equal(good(await node.deadLetters.purge(address)), 0);
    });

    it('fail as a whole when the task throws, and purging throws away what that left', async () => {
      const node = await site.start();
      const address = site.addressOf('enrich');
      handled(() => {
        throw new Error('out of order');
      });
      good(await site.deploy(node, 'enrich', undefined, { maxAttempts: 1 }));
      await site.publish('ada', ['1', '2', '3']);
      const letters = async () => good(await node.deadLetters.list(address, undefined, 2));
      await site.until('all are dead letters', async () => {
        const { entries, next } = await letters();
        return entries.length === 2 && next !== undefined;
      });
      assert.equal((await letters()).entries[0]?.error, 'Error: out of order');
      assert.equal(good(await node.deadLetters.purge(address)), 3);
      assert.deepEqual((await letters()).entries, []);
    });

    it('begin to flow when a topic is defined to feed them, and keep what was accepted before it was not', async () => {
      const node = await site.start();
      const texts = handled();
      await site.publish('ada', ['not ours'], 'raw');
      good(await site.deploy(node, 'enrich', undefined, { inputQueueNames: ['clean'] }));
      good(await node.topics.setTopic(site.owner.id, 'raw', { streams: [{ name: 'clean' }] }, undefined));
      const append = (text: string) => site.publish('ada', [text], 'raw', ['clean']);
      await append('one');
      await site.until('it is handled', () => texts.length === 1);
      good(await node.tasks.pause(site.addressOf('enrich')));
      await append('two');
      good(await node.topics.setTopic(site.owner.id, 'raw', {}, undefined));
      await node.end();
      const later = await site.start();
      good(await later.tasks.resume(site.addressOf('enrich')));
      await site.until('what was accepted for it comes', () => texts.length === 2);
      assert.deepEqual(texts, ['one', 'two']);
    });

    it('lose nothing and keep the order of each key while versions take over', async () => {
      const node = await site.start();
      const texts = handled();
      good(await site.deploy(node, 'enrich', undefined, { batchSize: 5, concurrency: 2 }));
      const keys = ['ada', 'bob', 'eve', 'kim'];
      let isPublishing = true;
      const publishing = (async () => {
        for (let n = 0; n < 300; n += 1)
          await Promise.all(keys.map((key) => site.publish(key, [`${key} ${n}`])));
        isPublishing = false;
      })();
      let versions = 1;
      while (isPublishing && versions < 8) {
        good(await site.deploy(node, 'enrich', undefined, { batchSize: versions, concurrency: 2 }));
        versions += 1;
      }
      await publishing;
      await site.until('all are handled', () => new Set(texts).size === 300 * keys.length);
      for (const key of keys) {
        const own = texts.filter((text) => text.startsWith(key)).map((text) => Number(text.split(' ')[1]));
        const firsts = own.filter((n, index) => own.indexOf(n) === index);
        assert.deepEqual(
          firsts,
          firsts.toSorted((a, b) => a - b),
          `${key} is in order`,
        );
      }
      assert.ok(versions > 1);
    });
  });
}
