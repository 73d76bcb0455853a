import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { BodyOf, Operations } from '@millrace/contract';
import { type Answer, call } from './harness/client.ts';
import { fresh, join, newApiKey, newOrganization, newPerson, type Person } from './harness/people.ts';
import { type Publisher, publish } from './harness/publisher.ts';
import { send } from './harness/requests.ts';
import { type RunningService, startService } from './harness/service.ts';

type Topic = BodyOf<Operations['updateTopic']>;
type Default = BodyOf<Operations['updateDefaultTopic']>;
type Expecting = { readonly expectedVersion?: number };

const writers = 20;

describe('topics', { concurrency: true, timeout: 120_000 }, () => {
  let service: RunningService;
  let admin: Person;
  before(async () => {
    service = await startService();
    admin = await newPerson(service);
  });
  after(() => service.remove());

  /** A new organization and what can be done to its topics. */
  async function site() {
    const organizationName = await newOrganization(service, admin);
    return at({ url: service.url, token: admin.accessToken, organizationName });
  }
  const get = (to: Publisher) => call(to.url, 'getTopics', { token: to.token, path: pathOf(to) });
  const at = (publisher: Publisher) => {
    const { url, token } = publisher;
    const path = pathOf(publisher);
    return {
      ...publisher,
      get: () => get(publisher),
      set: (topicName: string, body: Topic, query: Expecting = {}) =>
        call(url, 'updateTopic', { token, path: { ...path, topicName }, query, body }),
      remove: (topicName: string, query: Expecting = {}) =>
        call(url, 'deleteTopic', { token, path: { ...path, topicName }, query }),
      setDefault: (body: Default, query: Expecting = {}) =>
        call(url, 'updateDefaultTopic', { token, path, query, body }),
      publish: (topicName: string) => publish(publisher, topicName, { a: 1 }),
    };
  };
  const pathOf = ({ organizationName }: Publisher) => ({ organizationName });
  const refusal = ({ status, body }: Answer) => [status, body.code];
  const pointers = ({ body }: Answer) => body.errors?.map((error) => error.pointer);

  describe('of a new organization', () => {
    it('are none, at version 0, and undefined ones land in the lake', async () => {
      const { organizationName, get } = await site();
      const answer = await get();
      assert.deepEqual(answer.body, {
        organizationName,
        allowUndefinedTopics: true,
        undefinedTopic: { batch: {} },
        topics: {},
        version: 0,
      });
    });

    it('keep the spelling of the organization, however it is asked for', async () => {
      const name = fresh('MixedCase');
      await newOrganization(service, admin, name);
      const asked = at({ url: service.url, token: admin.accessToken, organizationName: name.toLowerCase() });
      assert.equal((await asked.get()).body.organizationName, name);
    });
  });

  describe('that are changed', { concurrency: true }, () => {
    it('are created, replaced whole and deleted, each a version further', async () => {
      const topics = await site();
      const full: Topic = {
        batch: { retentionInDays: 30 },
        streams: [{ name: 'fraud' }, { name: 'alerts' }],
        store: {
          keys: [
            { tableType: 'PRIMARY', pkParts: ['user'], skParts: ['at'], rangePrefix: 'visits' },
            { tableType: 'GSI', indexNumber: 1, pkParts: ['page'], rangePrefix: '' },
            { tableType: 'LSI', indexNumber: 1, pkParts: ['user'], skParts: [], rangePrefix: 'pages' },
          ],
          ttlInSec: 3600,
          whitelist: ['user', 'at'],
          blacklist: ['secret'],
        },
      };
      const created = await topics.set('clicks', full);
      assert.deepEqual([created.status, created.body.version], [200, 1]);
      assert.deepEqual(created.body.topics, { clicks: full });
      assert.deepEqual((await topics.get()).body, created.body);
      const replaced = await topics.set('clicks', { streams: [] });
      assert.deepEqual([replaced.body.version, replaced.body.topics], [2, { clicks: { streams: [] } }]);
      const second = await topics.set('orders', {});
      assert.deepEqual(second.body.topics, { clicks: { streams: [] }, orders: {} });
      const deleted = await topics.remove('clicks');
      assert.deepEqual([deleted.body.version, deleted.body.topics], [4, { orders: {} }]);
      assert.deepEqual((await topics.get()).body, deleted.body);
    });

    it('count a version also when a change changes nothing', async () => {
      const topics = await site();
      await topics.set('same', { batch: {} });
      assert.equal((await topics.set('same', { batch: {} })).body.version, 2);
    });

    it('cannot be deleted when they are not there, and that changes nothing', async () => {
      const topics = await site();
      for (const name of ['nothing', 'constructor', 'toString', 'default']) {
        assert.deepEqual(refusal(await topics.remove(name)), [404, 'TOPIC_NOT_FOUND'], name);
      }
      assert.equal((await topics.get()).body.version, 0);
    });

    it('are held to the version that was expected', async () => {
      const topics = await site();
      const first = await topics.set('a', {}, { expectedVersion: 0 });
      assert.equal(first.body.version, 1);
      const late = [
        await topics.set('b', {}, { expectedVersion: 0 }),
        await topics.set('b', {}, { expectedVersion: 7 }),
        await topics.remove('a', { expectedVersion: 0 }),
        await topics.setDefault({ allowUndefined: false }, { expectedVersion: 2 }),
      ];
      for (const [index, expected] of [0, 7, 0, 2].entries()) {
        const answer = late[index];
        assert.ok(answer);
        assert.deepEqual(refusal(answer), [409, 'VERSION_MISMATCH']);
        const named = [...answer.body.detail.matchAll(/\d+/g)].map(Number).sort();
        assert.deepEqual(named, [expected, 1].sort(), answer.body.detail);
      }
      assert.deepEqual((await topics.get()).body, first.body, 'nothing has changed');
      assert.equal((await topics.setDefault({ allowUndefined: false }, { expectedVersion: 1 })).status, 200);
      assert.equal((await topics.remove('a', { expectedVersion: 2 })).body.version, 3);
    });

    it('refuse an expected version that is none', async () => {
      const { organizationName, token, url } = await site();
      for (const expectedVersion of ['-1', '1.5', 'x', '', '1e400', 'null']) {
        const answer = await call(url, 'updateTopic', {
          token,
          path: { organizationName, topicName: 'a' },
          query: { expectedVersion },
          body: {},
        });
        assert.equal(answer.status, 400, expectedVersion);
        assert.deepEqual(pointers(answer), ['/query/expectedVersion'], expectedVersion);
      }
    });

    it('go to exactly one of many writers that expect the same version', async () => {
      const topics = await site();
      await topics.set('counter', {});
      const answers = await Promise.all(
        Array.from({ length: writers }, (_value, index) =>
          topics.set('counter', { streams: [{ name: `writer-${index}` }] }, { expectedVersion: 1 }),
        ),
      );
      const won = answers.flatMap((answer, index) => (answer.status === 200 ? [index] : []));
      assert.equal(won.length, 1);
      for (const answer of answers.filter(({ status }) => status !== 200)) {
        assert.deepEqual(refusal(answer), [409, 'VERSION_MISMATCH']);
      }
      const { version, topics: after } = (await topics.get()).body;
      assert.deepEqual([version, after], [2, { counter: { streams: [{ name: `writer-${won[0]}` }] } }]);
    });

    it('lose none of the changes of many writers that expect nothing', async () => {
      const topics = await site();
      const answers = await Promise.all(
        Array.from({ length: writers }, (_value, index) => topics.set(`topic-${index}`, {})),
      );
      const versions = answers.map(({ body }) => body.version).sort((one, other) => one - other);
      assert.deepEqual(
        versions,
        Array.from({ length: writers }, (_value, index) => index + 1),
      );
      for (const [index, { body }] of answers.entries()) {
        assert.ok(Object.hasOwn(body.topics, `topic-${index}`), 'an answer shows the change it answers');
        assert.equal(Object.keys(body.topics).length, body.version, 'and no change after it');
      }
      assert.equal(Object.keys((await topics.get()).body.topics).length, writers);
    });
  });

  describe('that are not defined', { concurrency: true }, () => {
    it('are taken or refused as the organization says, and defined ones are taken either way', async () => {
      const topics = await site();
      assert.equal((await topics.publish('anything')).status, 200);
      await topics.set('known', { batch: {} });
      const closed = await topics.setDefault({ allowUndefined: false });
      assert.deepEqual(
        [closed.body.allowUndefinedTopics, closed.body.undefinedTopic, closed.body.version],
        [false, undefined, 2],
      );
      for (const name of ['anything', 'never-seen', 'constructor', 'default']) {
        const answer = await topics.publish(name);
        assert.deepEqual(refusal(answer), [404, 'TOPIC_NOT_FOUND'], name);
        assert.ok(answer.body.detail.includes(name));
      }
      assert.equal((await topics.publish('known')).status, 200);
      await topics.remove('known');
      assert.equal((await topics.publish('known')).status, 404);
      const open = await topics.setDefault({ allowUndefined: true, topic: { streams: [{ name: 'all' }] } });
      assert.deepEqual(open.body.undefinedTopic, { streams: [{ name: 'all' }] });
      assert.equal((await topics.publish('anything')).status, 200);
    });

    it('take any body when nothing is said of what becomes of them but streams', async () => {
      const topics = await site();
      const text = () =>
        publish(topics, 'free', 'plain', { messageKey: 'k' }, { 'content-type': 'text/plain' });
      assert.equal((await text()).status, 415);
      await topics.setDefault({ allowUndefined: true });
      assert.equal((await topics.get()).body.undefinedTopic, undefined);
      assert.equal((await text()).status, 200);
    });

    it('follow a change at the very next message', async () => {
      const topics = await site();
      for (let round = 0; round < 25; round += 1) {
        const allowUndefined = round % 2 === 1;
        await topics.setDefault({ allowUndefined, topic: { batch: {} } });
        const during = Array.from({ length: 4 }, () => topics.publish('switched'));
        for (const answer of await Promise.all(during)) {
          assert.equal(answer.status, allowUndefined ? 200 : 404, `round ${round}`);
        }
      }
    });
  });

  describe('with odd names', { concurrency: true }, () => {
    const names = [
      'constructor',
      'toString',
      'hasOwnProperty',
      'valueOf',
      'then',
      'select',
      'drop-table',
      'a.b.c',
      'a..b',
      'trailing.',
      '-',
      '--dash',
      'under_score',
      '0',
      '1.5',
      'null',
      'Default',
      'clicks',
      'CLICKS',
      'x'.repeat(128),
    ];

    it('are topics like every other, also of other spellings', async () => {
      const topics = await site();
      const expected: Record<string, Topic> = {};
      for (const [index, name] of names.entries()) {
        expected[name] = { streams: [{ name }, { name: `stream-${index}` }] };
        assert.equal(
          (await topics.set(name, { streams: [{ name }, { name: `stream-${index}` }] })).status,
          200,
        );
      }
      const { body } = await topics.get();
      assert.deepEqual(body.topics, expected);
      await topics.setDefault({ allowUndefined: false });
      for (const name of names) assert.equal((await topics.publish(name)).status, 200, name);
      for (const name of names) assert.equal((await topics.remove(name)).status, 200, name);
      const { version, topics: left } = (await topics.get()).body;
      assert.deepEqual([version, left], [2 * names.length + 1, {}]);
    });

    it('are refused where a name may not be so', async () => {
      const topics = await site();
      const bad = ['_hidden', '.hidden', '__proto__', 'two words', 'é', 'a/b', 'a%b', 'x'.repeat(129), 'a\n'];
      for (const name of bad) {
        const answer = await topics.set(name, {});
        assert.equal(answer.status, 400, name);
        assert.deepEqual(pointers(answer), ['/path/topicName'], name);
        assert.match(
          answer.body.detail,
          /\/path\/topicName must be 1 to 128 letters, digits, dots, - or _, /,
        );
        assert.equal((await topics.publish(name)).status, 400, name);
        const stream = await topics.set('fine', { streams: [{ name }] });
        assert.deepEqual(pointers(stream), ['/streams/0/name'], name);
      }
      assert.equal((await topics.get()).body.version, 0);
    });

    it('leave the word default to what is not defined, however it is written', async () => {
      const { url, token, organizationName, get } = await site();
      for (const word of ['default', '%64efault', 'defaul%74']) {
        const answer = await send(url, {
          method: 'PATCH',
          target: `/v1/organization/${organizationName}/topic/${word}`,
          headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
          body: '{"batch":{}}',
        });
        assert.equal(answer.status, 400, `${word}: ${answer.text}`);
      }
      assert.deepEqual((await get()).body.topics, {});
    });
  });

  describe('that make no sense', { concurrency: true }, () => {
    const primary = { tableType: 'PRIMARY', pkParts: ['id'], rangePrefix: 'p' } as const;
    const gsi = { tableType: 'GSI', indexNumber: 1, pkParts: ['id'], rangePrefix: 'g' } as const;
    const lsi = { tableType: 'LSI', indexNumber: 1, pkParts: ['id'], rangePrefix: 'l' } as const;
    const { indexNumber: _number, ...unnumbered } = gsi;
    const store = (...keys: object[]) => ({ store: { keys, ttlInSec: 60 } });
    const wrong: readonly (readonly [what: string, topic: unknown, pointers: string[]])[] = [
      ['no keys', store(), ['/store/keys']],
      ['no primary key', store(gsi), ['/store/keys']],
      ['two primary keys', store(primary, { ...primary, rangePrefix: 'q' }), ['/store/keys']],
      ['a numbered primary key', store({ ...primary, indexNumber: 0 }), ['/store/keys/0/indexNumber']],
      ['an index without a number', store(primary, unnumbered), ['/store/keys/1/indexNumber']],
      ['an index twice', store(primary, gsi, lsi, gsi), ['/store/keys/3']],
      ['an index past the last', store(primary, { ...gsi, indexNumber: 11 }), ['/store/keys/1/indexNumber']],
      ['a key of no field', store({ ...primary, pkParts: [] }), ['/store/keys/0/pkParts']],
      ['a field without a name', store({ ...primary, pkParts: [''] }), ['/store/keys/0/pkParts/0']],
      ['another kind of table', store({ ...primary, tableType: 'TABLE' }), ['/store/keys/0/tableType']],
      ['no time to live', { store: { keys: [primary] } }, ['/store/ttlInSec']],
      ['no life at all', { store: { keys: [primary], ttlInSec: 0 } }, ['/store/ttlInSec']],
      ['retention of no day', { batch: { retentionInDays: 0 } }, ['/batch/retentionInDays']],
      ['retention of ages', { batch: { retentionInDays: 3661 } }, ['/batch/retentionInDays']],
      ['a stream twice', { streams: [{ name: 'a' }, { name: 'b' }, { name: 'a' }] }, ['/streams/2/name']],
      ['a stream without a name', { streams: [{}] }, ['/streams/0/name']],
      ['an unknown field', { batches: {} }, ['/batches']],
      ['null for nothing', { batch: null }, ['/batch']],
    ];

    it('are refused with the place of the mistake, as a topic and as the default', async () => {
      const { url, token, organizationName, get } = await site();
      const patch = (target: string, body: unknown) =>
        send(url, {
          method: 'PATCH',
          target: `/v1/organization/${organizationName}/topic/${target}`,
          headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
          body: JSON.stringify(body),
        });
      for (const [what, topic, places] of wrong) {
        const answer = await patch('orders', topic);
        assert.deepEqual(refusal(answer), [400, 'VALIDATION_FAILED'], what);
        assert.deepEqual(pointers(answer), places, what);
        const asDefault = await patch('default', { allowUndefined: true, topic });
        assert.deepEqual(refusal(asDefault), [400, 'VALIDATION_FAILED'], what);
        assert.deepEqual(
          pointers(asDefault),
          places.map((place) => `/topic${place}`),
          what,
        );
      }
      assert.equal((await get()).body.version, 0);
    });
  });

  describe('and who may see them', { concurrency: true }, () => {
    it('are told to nobody of another organization, and changed by nobody there', async () => {
      const topics = await site();
      await topics.set('secret-project', { streams: [{ name: 'secret-stream' }] });
      const outsider = await newPerson(service);
      const theirs = await newOrganization(service, outsider);
      const intruder = at({ ...topics, token: outsider.accessToken });
      for (const answer of [
        await intruder.get(),
        await intruder.set('secret-project', {}),
        await intruder.remove('secret-project'),
        await intruder.setDefault({ allowUndefined: false }),
        await intruder.publish('secret-project'),
      ]) {
        assert.equal(answer.status, 404);
        assert.notEqual(answer.body.code, 'TOPIC_NOT_FOUND');
        assert.ok(!answer.text.includes('secret-stream'));
      }
      const own = at({ ...topics, token: outsider.accessToken, organizationName: theirs });
      assert.deepEqual((await own.get()).body.topics, {});
      await own.set('secret-project', { batch: {} });
      await own.setDefault({ allowUndefined: false });
      const unchanged = (await topics.get()).body;
      assert.deepEqual(
        [unchanged.version, unchanged.allowUndefinedTopics, unchanged.topics],
        [1, true, { 'secret-project': { streams: [{ name: 'secret-stream' }] } }],
      );
    });

    it('are read by viewers and not written, and written by members', async () => {
      const topics = await site();
      await topics.set('clicks', { batch: {} });
      const [viewer, member] = await Promise.all([newPerson(service), newPerson(service)]);
      await join(service, admin, topics.organizationName, viewer, 'VIEWER');
      await join(service, admin, topics.organizationName, member, 'MEMBER');
      const watching = at({ ...topics, token: viewer.accessToken });
      assert.deepEqual((await watching.get()).body.topics, { clicks: { batch: {} } });
      for (const answer of [
        await watching.set('clicks', {}),
        await watching.remove('clicks'),
        await watching.setDefault({ allowUndefined: false }),
        await watching.publish('clicks'),
      ]) {
        assert.equal(answer.status, 403);
      }
      assert.equal((await topics.get()).body.version, 1);
      const working = at({ ...topics, token: member.accessToken });
      assert.equal((await working.set('clicks', {})).status, 200);
      const { secret } = await newApiKey(service, member.accessToken, topics.organizationName);
      assert.equal((await at({ ...topics, token: secret }).remove('clicks')).body.version, 3);
    });
  });

  it('are still there after a crash, with their version', async () => {
    const first = await startService();
    let second: RunningService | undefined;
    try {
      const person = await newPerson(first);
      const organizationName = await newOrganization(first, person);
      const publisher = { url: first.url, token: person.accessToken, organizationName };
      const before = at(publisher);
      await before.set('clicks', { streams: [{ name: 'fraud' }], batch: { retentionInDays: 3 } });
      await before.set('toString', {});
      const last = await before.setDefault({ allowUndefined: false, topic: { streams: [{ name: 'x' }] } });
      await first.kill();
      second = await startService({ dataDirectory: first.dataDirectory });
      const after = at({ ...publisher, url: second.url });
      assert.deepEqual((await after.get()).body, last.body);
      assert.equal((await after.publish('other')).status, 404);
      assert.equal((await after.publish('clicks')).status, 200);
      assert.equal((await after.set('more', {}, { expectedVersion: 3 })).body.version, 4);
    } finally {
      await second?.remove();
      await first.remove();
    }
  });
});
