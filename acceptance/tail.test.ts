import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { call } from './harness/client.ts';
import { openConnection } from './harness/connection.ts';
import { follow } from './harness/follower.ts';
import { openFiles } from './harness/metrics.ts';
import { fresh, join, newApiKey, newOrganization, newPerson, type Person } from './harness/people.ts';
import { lines, type Publisher, publish, publishMany } from './harness/publisher.ts';
import { type RunningService, startService } from './harness/service.ts';
import { eventually } from './harness/waiting.ts';

describe('following a topic live', { concurrency: true, timeout: 120_000 }, () => {
  let service: RunningService;
  let admin: Person;
  let publisher: Publisher;
  before(async () => {
    service = await startService();
    admin = await newPerson(service);
    const organizationName = await newOrganization(service, admin);
    publisher = { url: service.url, token: admin.accessToken, organizationName };
  });
  after(() => service.remove());

  const tailPath = ({ organizationName }: Publisher, topicName: string) =>
    `/v1/organization/${organizationName}/topic/${topicName}/tail`;

  it('shows each message with its key, its id, when it was accepted and its body', async () => {
    const follower = await follow(publisher, 'shown');
    assert.match(follower.headers['content-type'] ?? '', /^text\/event-stream/);
    assert.ok(follower.headers['x-request-id']);
    const before = Date.now();
    await publish(publisher, 'shown', { page: '/' }, { messageKey: 'user 1', messageId: 'm-1' });
    const made = await publish(publisher, 'shown', {}, { messageKey: 'user 2' });
    const after = Date.now();
    const messages = await follower.messages(2);
    assert.deepEqual(
      messages.map(({ acceptedAt: _time, ...rest }) => rest),
      [
        { messageKey: 'user 1', messageId: 'm-1', body: { page: '/' } },
        { messageKey: 'user 2', messageId: made.body.messageId, body: {} },
      ],
    );
    for (const { acceptedAt } of messages) {
      assert.match(acceptedAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      assert.ok(Date.parse(acceptedAt) >= before && Date.parse(acceptedAt) <= after);
    }
    follower.leave();
  });

  it('shows only what comes after it began, and all of that', async () => {
    for (let round = 0; round < 20; round += 1) {
      const topicName = `began-${round % 4}`;
      await publish(publisher, topicName, { before: round });
      const follower = await follow(publisher, topicName);
      await publish(publisher, topicName, { after: round });
      assert.deepEqual((await follower.messages(1))[0]?.body, { after: round });
      follower.leave();
    }
  });

  it('does not show duplicates and messages that were refused', async () => {
    const follower = await follow(publisher, 'accepted');
    const query = { messageKey: 'k', messageId: 'same' };
    await publish(publisher, 'accepted', { n: 1 }, query);
    await publish(publisher, 'accepted', { n: 2 }, query);
    await publish(publisher, 'accepted', '[]');
    await publishMany(publisher, 'accepted', '{"n":3}\n{"n":\n{"n":4}', { messageKeyPath: '/n' }, lines);
    await publish(publisher, 'accepted', { n: 5 });
    const bodies = (await follower.messages(4)).map(({ body }) => JSON.stringify(body));
    assert.deepEqual(bodies.sort(), ['{"n":1}', '{"n":3}', '{"n":4}', '{"n":5}']);
    follower.leave();
  });

  it('shows the messages of one key only, when asked to', async () => {
    const one = await follow(publisher, 'keyed', { messageKey: 'käse &?' });
    const all = await follow(publisher, 'keyed');
    const keys = ['käse &?', 'other', 'käse &', 'KÄSE &?', 'käse &?', 'more'];
    for (const [n, messageKey] of keys.entries()) await publish(publisher, 'keyed', { n }, { messageKey });
    await all.messages(keys.length);
    const bodies = (await one.messages(2)).map(({ body }) => body);
    assert.deepEqual(bodies, [{ n: 0 }, { n: 4 }]);
    one.leave();
    all.leave();
  });

  it('shows the same to several followers, in the order of each key', async () => {
    const followers = await Promise.all(Array.from({ length: 8 }, () => follow(publisher, 'shared')));
    const keys = 10;
    const each = 40;
    await Promise.all(
      Array.from({ length: keys }, async (_value, key) => {
        for (let n = 0; n < each; n += 4) {
          await publish(publisher, 'shared', { key, n }, { messageKey: `k${key}` });
          const batch = [1, 2, 3].map((more) => ({ key, k: `k${key}`, n: n + more }));
          await publishMany(publisher, 'shared', batch, { messageKeyPath: '/k' });
        }
      }),
    );
    for (const follower of followers) {
      const messages = await follower.messages(keys * each, 30_000);
      assert.equal(messages.length, keys * each);
      for (let key = 0; key < keys; key += 1) {
        const numbers = messages
          .filter(({ messageKey }) => messageKey === `k${key}`)
          .map(({ body }) => Number(Object(body).n));
        assert.deepEqual(
          numbers,
          Array.from({ length: each }, (_value, n) => n),
          `key ${key}`,
        );
      }
      follower.leave();
    }
  });

  it('shows nothing of the same topic of another organization', async () => {
    const other = { ...publisher, organizationName: await newOrganization(service, admin) };
    const follower = await follow(publisher, 'private');
    await publish(other, 'private', { theirs: true });
    await publish(publisher, 'private', { ours: true });
    assert.deepEqual((await follower.messages(1))[0]?.body, { ours: true });
    follower.leave();
  });

  it('is for members of the organization, viewers included, and for nobody else', async () => {
    const [viewer, outsider] = await Promise.all([newPerson(service), newPerson(service)]);
    await join(service, admin, publisher.organizationName, viewer, 'VIEWER');
    const watching = await follow({ ...publisher, token: viewer.accessToken }, 'watched');
    await publish(publisher, 'watched', { n: 1 });
    await watching.messages(1);
    watching.leave();
    const path = { organizationName: publisher.organizationName, topicName: 'watched' };
    const { token } = publisher;
    const whitelist = { queueWhitelist: ['watched'] };
    const restricted = await newApiKey(service, token, publisher.organizationName, whitelist);
    const refused: [string | undefined, number][] = [
      [undefined, 401],
      ['none', 401],
      [outsider.accessToken, 404],
      [restricted.secret, 403],
    ];
    for (const [credential, status] of refused) {
      assert.equal((await call(service.url, 'tail', { token: credential, path })).status, status);
    }
  });

  it('is refused for a topic that may not be, and for names and keys that are none', async () => {
    const organizationName = await newOrganization(service, admin);
    const { token, url } = publisher;
    const closed = { organizationName };
    await call(url, 'updateDefaultTopic', { token, path: closed, body: { allowUndefined: false } });
    await call(url, 'updateTopic', { token, path: { ...closed, topicName: 'known' }, body: {} });
    const tail = (topicName: string, query: Record<string, string> = {}) =>
      call(url, 'tail', { token, path: { ...closed, topicName }, query });
    const answer = await tail('unknown');
    assert.deepEqual([answer.status, answer.body.code], [404, 'TOPIC_NOT_FOUND']);
    assert.equal((await tail('_hidden')).status, 400);
    assert.equal((await tail('known', { messageKey: '' })).status, 400);
    assert.equal((await tail('known', { key: 'a' })).status, 400);
    const follower = await follow({ ...publisher, organizationName }, 'known');
    await publish({ ...publisher, organizationName }, 'known', { n: 1 });
    await follower.messages(1);
    follower.leave();
  });

  it('lets go of followers that leave, however many come and go', async () => {
    const own = await startService();
    try {
      const person = await newPerson(own);
      const organizationName = await newOrganization(own, person);
      const theirs = { url: own.url, token: person.accessToken, organizationName };
      await publish(theirs, 'visited', {});
      const before = await openFiles(own.url);
      for (let round = 0; round < 10; round += 1) {
        const followers = await Promise.all(Array.from({ length: 30 }, () => follow(theirs, 'visited')));
        await publish(theirs, 'visited', { round });
        await followers[0]?.messages(1);
        for (const follower of followers) follower.leave();
      }
      await eventually('the connections to be let go', 10_000, async () =>
        (await openFiles(own.url)) <= before + 3 ? true : undefined,
      );
      const follower = await follow(theirs, 'visited');
      await publish(theirs, 'visited', { last: true });
      assert.deepEqual((await follower.messages(1))[0]?.body, { last: true });
      follower.leave();
      assert.equal(own.output().stderr, '');
    } finally {
      await own.remove();
    }
  });

  it('does not hold up anybody when a follower does not read', async () => {
    const stuck = await openConnection(publisher.url);
    stuck.send(
      `GET ${tailPath(publisher, 'stuck')} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${publisher.token}\r\n\r\n`,
    );
    stuck.socket.pause();
    const reading = await follow(publisher, 'stuck');
    const big = { text: 'x'.repeat(200_000) };
    for (let n = 0; n < 60; n += 1) await publish(publisher, 'stuck', { n, ...big }, { messageKey: `k${n}` });
    const messages = await reading.messages(60, 30_000);
    assert.equal(new Set(messages.map(({ messageKey }) => messageKey)).size, 60);
    reading.leave();
    stuck.destroy();
  });

  it('ends at once when the service stops, for all who follow', async () => {
    const own = await startService();
    try {
      const person = await newPerson(own);
      const organizationName = await newOrganization(own, person);
      const theirs = { url: own.url, token: person.accessToken, organizationName };
      const followers = await Promise.all(
        Array.from({ length: 20 }, (_value, n) => follow(theirs, fresh(n % 2 === 0 ? 'busy' : 'idle'))),
      );
      const started = performance.now();
      const stopped = own.stop();
      await Promise.all(followers.map((follower) => follower.ended(5000)));
      assert.equal(await stopped, 0);
      assert.ok(performance.now() - started < 5000, 'it did not wait for them');
    } finally {
      await own.remove();
    }
  });
});
