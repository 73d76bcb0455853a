import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import type { Database } from '../database/database.ts';
import { organization } from '../database/rows.suite.ts';
import { systemClock } from '../platform/clock.ts';
import { Problem } from '../platform/problem.ts';
import { initialDocument, type StoreKey, type TopicsDocument } from './definition.ts';
import { Topics } from './topics.ts';

const writers = 20;

/** What topics are on any database. */
export function topicsSuite(
  engine: string,
  open: () => Promise<{ database: Database; close(): Promise<void> }>,
): void {
  describe(`topics in ${engine}`, { timeout: 60_000 }, () => {
    let database: Database;
    let close: () => Promise<void>;
    let topics: Topics;
    /** Another node's view of the same topics. */
    let elsewhere: Topics;
    let id = '';
    let count = 0;
    before(async () => {
      ({ database, close } = await open());
      topics = new Topics(database, systemClock);
      elsewhere = new Topics(database, systemClock);
    });
    after(() => close());
    beforeEach(async () => {
      count += 1;
      id = `o${count}`;
      await database.query.insertInto('organizations').values(organization(id)).execute();
    });

    function good(outcome: TopicsDocument | Problem): TopicsDocument {
      if (outcome instanceof Problem) assert.fail(outcome.detail);
      return outcome;
    }
    const codeOf = (outcome: TopicsDocument | Problem) =>
      outcome instanceof Problem ? outcome.code : outcome.version;

    it('are the same for every organization at first, and then its own', async () => {
      assert.deepEqual(await topics.get(id), initialDocument);
      good(await topics.setTopic(id, 'clicks', { batch: { retentionInDays: 3 } }, undefined));
      assert.deepEqual(await topics.get('another'), initialDocument);
      const document = await elsewhere.get(id);
      assert.deepEqual([...document.topics], [['clicks', { batch: { retentionInDays: 3 } }]]);
      assert.deepEqual([document.version, document.allowUndefined], [1, true]);
      assert.equal(initialDocument.topics.size, 0);
    });

    it('go to exactly one of many writers that expect the same version', async () => {
      for (let version = 0; version < 5; version += 1) {
        const outcomes = await Promise.all(
          Array.from({ length: writers }, (_value, writer) =>
            (writer % 2 === 0 ? topics : elsewhere).setTopic(
              id,
              'contested',
              { streams: [{ name: `w${writer}` }] },
              version,
            ),
          ),
        );
        const won = outcomes.flatMap((outcome, writer) => (outcome instanceof Problem ? [] : [writer]));
        assert.equal(won.length, 1);
        for (const outcome of outcomes) {
          if (outcome instanceof Problem) assert.equal(outcome.code, 'VERSION_MISMATCH');
        }
        const document = await topics.get(id);
        assert.equal(document.version, version + 1);
        assert.deepEqual(document.topics.get('contested'), { streams: [{ name: `w${won[0]}` }] });
      }
    });

    it('lose none of the changes of many writers', async () => {
      const outcomes = await Promise.all(
        Array.from({ length: writers }, (_value, writer) =>
          (writer % 2 === 0 ? topics : elsewhere).setTopic(id, `topic-${writer}`, {}, undefined),
        ),
      );
      const versions = outcomes.map((outcome) => good(outcome).version);
      assert.deepEqual(
        versions.sort((one, other) => one - other),
        Array.from({ length: writers }, (_value, version) => version + 1),
      );
      const document = await topics.get(id);
      assert.deepEqual([document.version, document.topics.size], [writers, writers]);
    });

    it('change nothing when a change is refused', async () => {
      good(await topics.setTopic(id, 'a', {}, undefined));
      const before = await topics.get(id);
      const twice = { streams: [{ name: 'x' }, { name: 'x' }] };
      assert.equal(codeOf(await topics.setTopic(id, 'a', twice, undefined)), 'VALIDATION_FAILED');
      const asDefault = { allowUndefined: false, topic: twice };
      assert.equal(codeOf(await topics.setUndefined(id, asDefault, undefined)), 'VALIDATION_FAILED');
      assert.equal(codeOf(await topics.deleteTopic(id, 'b', undefined)), 'TOPIC_NOT_FOUND');
      assert.equal(codeOf(await topics.deleteTopic(id, 'b', 9)), 'VERSION_MISMATCH');
      assert.equal(codeOf(await topics.deleteTopic(id, 'a', 0)), 'VERSION_MISMATCH');
      assert.deepEqual(await topics.get(id), before);
      assert.deepEqual(await elsewhere.get(id), before);
    });

    it('remember when one was deleted, until it is defined again', async () => {
      good(await topics.setTopic(id, 'a', { batch: {} }, undefined));
      good(await topics.setTopic(id, 'b', { batch: {} }, undefined));
      const before = Date.now();
      good(await topics.deleteTopic(id, 'a', undefined));
      good(await topics.deleteTopic(id, 'b', undefined));
      const { deleted } = await elsewhere.get(id);
      assert.deepEqual([...deleted.keys()], ['a', 'b']);
      for (const at of deleted.values()) assert.ok(at >= before && at <= Date.now());
      good(await topics.setTopic(id, 'a', {}, undefined));
      assert.deepEqual([...(await elsewhere.get(id)).deleted.keys()], ['b']);
    });

    describe('resolved for a message', () => {
      const routesOf = async (name: string, of = topics) => (await of.resolve(id, name))?.routes;

      it('go where the definition says', async () => {
        const keys: StoreKey[] = [{ tableType: 'PRIMARY', pkParts: ['id'], rangePrefix: '' }];
        good(await topics.setTopic(id, 'none', {}, undefined));
        good(await topics.setTopic(id, 'lake', { batch: {} }, undefined));
        good(await topics.setTopic(id, 'stored', { store: { keys, ttlInSec: 9 } }, undefined));
        good(await topics.setTopic(id, 'streams', { streams: [{ name: 'b' }, { name: 'a' }] }, undefined));
        assert.deepEqual(await routesOf('none'), { streams: [], lake: false, store: false });
        assert.deepEqual(await routesOf('lake'), { streams: [], lake: true, store: false });
        assert.deepEqual(await routesOf('stored'), { streams: [], lake: false, store: true });
        assert.deepEqual(await routesOf('streams'), { streams: ['b', 'a'], lake: false, store: false });
      });

      it('also feed the stream of their own name when they are not defined', async () => {
        assert.deepEqual(await routesOf('new'), { streams: ['new'], lake: true, store: false });
        const topic = { streams: [{ name: 'all' }, { name: 'own' }] };
        good(await topics.setUndefined(id, { allowUndefined: true, topic }, undefined));
        assert.deepEqual(await routesOf('new'), {
          streams: ['all', 'own', 'new'],
          lake: false,
          store: false,
        });
        assert.deepEqual((await routesOf('own'))?.streams, ['all', 'own']);
        good(await topics.setUndefined(id, { allowUndefined: true }, undefined));
        assert.deepEqual(await routesOf('new'), { streams: ['new'], lake: false, store: false });
        good(await topics.setUndefined(id, { allowUndefined: false, topic }, undefined));
        assert.equal(await routesOf('new'), undefined);
        for (const name of ['constructor', '__proto__', 'toString']) {
          assert.equal(await routesOf(name), undefined);
        }
      });

      it('cost no wait once they are known, and follow a change all the same', async () => {
        for (let round = 0; round < 10; round += 1) {
          const name = `s${round}`;
          good(await topics.setTopic(id, 'clicks', { streams: [{ name }] }, undefined));
          assert.deepEqual((await routesOf('clicks'))?.streams, [name]);
          assert.deepEqual((await routesOf('clicks', elsewhere))?.streams, [name]);
          const known = topics.resolve(id, 'clicks');
          assert.ok(known !== undefined && !(known instanceof Promise));
          assert.equal(topics.resolve(id, 'clicks'), known);
        }
        good(await topics.deleteTopic(id, 'clicks', undefined));
        assert.deepEqual((await routesOf('clicks'))?.streams, ['clicks']);
      });

      it('remember only so many names that nobody defined', async () => {
        await topics.get(id);
        for (let name = 0; name < 25_000; name += 1) {
          const resolved = topics.resolve(id, `made-up-${name}`);
          assert.ok(!(resolved instanceof Promise) || name === 0 || database.engine === 'postgres');
        }
        assert.deepEqual((await routesOf('made-up-0'))?.streams, ['made-up-0']);
      });
    });
  });
}
