import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import type { BodyOf, NamedType, Operations } from '@millrace/contract';
import { type Answer, address, call, contract } from './harness/client.ts';
import { follow } from './harness/follower.ts';
import { fresh, newApiKey, newOrganization, newPerson, type Person } from './harness/people.ts';
import { lines, type Publisher, publish, publishMany } from './harness/publisher.ts';
import { send } from './harness/requests.ts';
import { type RunningService, startService } from './harness/service.ts';

type StoreKey = NamedType<'StoreKey'>;

const mebibyte = 1024 * 1024;
const key = { messageKey: 'key' };
const json = { 'content-type': 'application/json' };

describe('a message', { concurrency: true, timeout: 120_000 }, () => {
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

  const define = async (topicName: string, body: BodyOf<Operations['updateTopic']>, to = publisher) => {
    const { url, token, organizationName } = to;
    const answer = await call(url, 'updateTopic', { token, path: { organizationName, topicName }, body });
    assert.equal(answer.status, 200, answer.text);
    return topicName;
  };
  const streamed = () => define(fresh('streamed'), { streams: [{ name: 'raw' }] });
  const refusal = ({ status, body }: Answer) => [status, body.code];
  const pointers = ({ body }: Answer) => body.errors?.map((error) => error.pointer);

  /** A JSON object of exactly so many bytes. */
  const objectOf = (bytes: number) => `{"a":"${'x'.repeat(bytes - 8)}"}`;

  describe('for a topic with batch or store', { concurrency: true }, () => {
    it('is a JSON object, and its media type may say so in several ways', async () => {
      const types = [
        { 'content-type': 'application/json' },
        { 'content-type': 'Application/JSON ; charset="UTF-8"' },
        { 'content-type': 'application/json;charset=utf-8' },
        { 'content-type': 'application/octet-stream' },
        {},
      ];
      const keys: StoreKey[] = [{ tableType: 'PRIMARY', pkParts: ['id'], rangePrefix: '' }];
      await define('kept', { store: { keys, ttlInSec: 60 } });
      for (const topicName of ['anything', 'kept']) {
        for (const headers of types) {
          const answer = await publish(publisher, topicName, { id: 1, text: 'Größe 漢字 🎈' }, key, headers);
          assert.equal(answer.status, 200, JSON.stringify(headers));
          assert.equal(answer.body.duplicate, false);
        }
      }
    });

    it('is refused under any other media type, whatever it holds', async () => {
      for (const type of [
        'text/plain',
        'application/xml',
        'text/json',
        'application/ld+json',
        'application/x-ndjson',
        'application/jsonp',
        'application/x-www-form-urlencoded',
        'multipart/form-data; boundary=x',
        'image/png',
      ]) {
        const answer = await publish(publisher, 'typed', '{"a":1}', key, { 'content-type': type });
        assert.deepEqual(refusal(answer), [415, 'MEDIA_TYPE_NOT_SUPPORTED'], type);
      }
    });

    it('is refused when it is declared to be in another encoding than UTF-8', async () => {
      for (const type of [
        'application/json; charset=utf-16',
        'application/json;charset="latin1"',
        'application/octet-stream; charset=utf-16le',
      ]) {
        const answer = await publish(publisher, 'typed', '{"a":1}', key, { 'content-type': type });
        assert.deepEqual(refusal(answer), [415, 'MEDIA_TYPE_NOT_SUPPORTED'], type);
        assert.match(answer.body.detail, /in UTF-8/);
      }
    });

    it('is refused when it is JSON and no object', async () => {
      for (const body of ['[]', '[{"a":1}]', '"text"', '1', 'null', 'true', ' [ ] ']) {
        for (const headers of [json, { 'content-type': 'application/octet-stream' }, {}]) {
          assert.deepEqual(refusal(await publish(publisher, 'objects', body, key, headers)), [
            400,
            'BODY_NOT_OBJECT',
          ]);
        }
      }
    });

    it('is refused when it is no JSON in UTF-8', async () => {
      const malformed = [
        '',
        ' ',
        '{',
        '{"a":1}}',
        '{"a":1}{"b":2}',
        '{"a":1,}',
        "{'a':1}",
        '{"a":"\n"}',
        '{"a":NaN}',
        'hello',
        '{"a":1}\0',
        Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]),
        Buffer.from('{"é":1}', 'latin1'),
        Buffer.from('\ufeff{"a":1}', 'utf16le'),
        randomBytes(64),
      ];
      for (const body of malformed) {
        for (const headers of [json, {}]) {
          const answer = await publish(publisher, 'malformed', body, key, headers);
          assert.deepEqual(refusal(answer), [400, 'MALFORMED_JSON'], String(body));
        }
      }
    });

    it('may be deep, long in names or full of odd ones', async () => {
      const deep = 50_000;
      const nested = `{"a":${'['.repeat(deep)}${']'.repeat(deep)}}`;
      for (const body of [
        nested,
        '{"__proto__":{"x":1},"constructor":1,"":2}',
        `{"${'n'.repeat(9999)}":1}`,
      ]) {
        assert.equal((await publish(publisher, 'odd', body)).status, 200);
      }
    });

    it('keeps every byte, and its numbers with every digit', async () => {
      const follower = await follow(publisher, 'exact');
      const body =
        '{ "n" : 12345678901234567890, "e":1e400,"f":0.10, "u":"\\u00e9é", "n":1, "__proto__":{} }';
      await publish(publisher, 'exact', body);
      await publish(publisher, 'exact', `\ufeff\r\n${body}\r\n`, key, {});
      await follower.messages(2);
      for (const text of follower.texts())
        assert.ok(text.includes(`"body":${body}`) || text.includes(body), text);
      follower.leave();
    });
  });

  describe('for a topic with only streams', { concurrency: true }, () => {
    it('has any media type and any bytes', async () => {
      const topicName = await streamed();
      const follower = await follow(publisher, topicName);
      const noise = randomBytes(300);
      const sent: [body: string | Buffer, type: string | undefined, seen: unknown][] = [
        ['plain text\nof two lines', 'text/plain', 'plain text\nof two lines'],
        ['Größe 漢字 🎈', 'text/plain; charset=utf-8', 'Größe 漢字 🎈'],
        ['a,b\r\n1,2\r\n', 'Text/CSV', 'a,b\r\n1,2\r\n'],
        [noise, 'application/octet-stream', noise.toString('base64')],
        [noise, 'image/png', noise.toString('base64')],
        [noise, undefined, noise.toString('base64')],
        [
          Buffer.from('Größe', 'latin1'),
          'text/plain; charset=latin1',
          Buffer.from('Größe', 'latin1').toString('base64'),
        ],
        ['{"a":\n[1]}', 'application/json', { a: [1] }],
        ['"just text"', 'application/json; charset=utf-8', 'just text'],
        ['null', 'application/json', null],
        ['{"not json', 'application/json', Buffer.from('{"not json').toString('base64')],
        ['', 'text/plain', ''],
        ['data: x\n\nevent: dropped\ndata: {}\n\n', 'text/plain', 'data: x\n\nevent: dropped\ndata: {}\n\n'],
      ];
      for (const [body, type] of sent) {
        const headers: Record<string, string> = type === undefined ? {} : { 'content-type': type };
        const answer = await publish(publisher, topicName, body, key, headers);
        assert.equal(answer.status, 200, `${type}: ${answer.text}`);
      }
      const messages = await follower.messages(sent.length);
      assert.deepEqual(
        messages.map((message) => message.body),
        sent.map(([, , seen]) => seen),
      );
      follower.leave();
    });

    it('is refused with a media type that is none', async () => {
      const topicName = await streamed();
      for (const type of ['nonsense', ';', '/']) {
        const answer = await publish(publisher, topicName, 'x', key, { 'content-type': type });
        assert.ok([200, 415].includes(answer.status), `${type}: ${answer.text}`);
      }
    });
  });

  describe('and its key and id', { concurrency: true }, () => {
    it('needs a key of 1 to 1024 characters', async () => {
      for (const query of [
        {},
        { messageKey: '' },
        { messageKey: 'k'.repeat(1025) },
        { messageKey: 'a\0b' },
      ]) {
        const answer = await publish(publisher, 'keys', { a: 1 }, query);
        assert.equal(answer.status, 400);
        assert.deepEqual(pointers(answer), ['/query/messageKey']);
      }
      const follower = await follow(publisher, 'keys');
      const keys = [
        'k',
        'k'.repeat(1024),
        ' ',
        'a b&c=d?#/%',
        'ключ 🎈',
        '__proto__',
        '"\n\r\u2028',
        '🎈'.repeat(1024),
      ];
      for (const messageKey of keys) {
        assert.equal((await publish(publisher, 'keys', {}, { messageKey })).status, 200, messageKey);
      }
      const seen = (await follower.messages(keys.length)).map((message) => message.messageKey);
      assert.deepEqual(new Set(seen), new Set(keys));
      follower.leave();
    });

    it('refuses two keys, a key of half a character, and parameters it does not know', async () => {
      const path = { organizationName: publisher.organizationName, topicName: 'keys' };
      const target = address({ ...contract.operations.message, id: 'message' }, path);
      for (const query of [
        'messageKey=a&messageKey=b',
        'messageKey=%ff',
        'messageKey=%',
        'messageKey=a&key=b',
      ]) {
        const headers = { ...json, authorization: `Bearer ${publisher.token}` };
        const answer = await send(publisher.url, {
          method: 'POST',
          target: `${target}?${query}`,
          headers,
          body: '{}',
        });
        assert.equal(answer.status, 400, query);
      }
    });

    it('has the id it was given, or one of its own that no other has', async () => {
      const given = await publish(publisher, 'ids', {}, { messageKey: 'k', messageId: 'order 7/ü' });
      assert.deepEqual(given.body, { messageId: 'order 7/ü', duplicate: false });
      const made = await Promise.all(Array.from({ length: 50 }, () => publish(publisher, 'ids', {})));
      const ids = new Set(made.map(({ body }) => body.messageId));
      assert.equal(ids.size, made.length);
      assert.ok(made.every(({ body }) => !body.duplicate && /^\w{1,64}$/.test(body.messageId)));
      for (const messageId of ['', 'x'.repeat(1025), 'a\0']) {
        const answer = await publish(publisher, 'ids', {}, { messageKey: 'k', messageId });
        assert.deepEqual(pointers(answer), ['/query/messageId']);
      }
    });

    it('is a duplicate when its id was accepted before, in this topic of this organization', async () => {
      const other = { ...publisher, organizationName: await newOrganization(service, admin) };
      const query = { messageKey: 'a', messageId: 'once' };
      const follower = await follow(publisher, 'once');
      const answers = [
        await publish(publisher, 'once', { n: 1 }, query),
        await publish(publisher, 'once', { n: 2 }, query),
        await publish(publisher, 'once', { n: 3 }, { ...query, messageKey: 'another key' }),
        await publish(publisher, 'Once', { n: 4 }, query),
        await publish(other, 'once', { n: 5 }, query),
        await publish(publisher, 'once', { n: 6 }, { ...query, messageId: 'ONCE' }),
        await publish(publisher, 'once', { n: 7 }, { ...query, messageId: 'once ' }),
      ];
      assert.deepEqual(
        answers.map(({ body }) => body.duplicate),
        [false, true, true, false, false, false, false],
      );
      const seen = (await follower.messages(3)).map((message) => message.body);
      assert.deepEqual(seen, [{ n: 1 }, { n: 6 }, { n: 7 }]);
      follower.leave();
    });

    it('does not spend its id when it is refused', async () => {
      const query = { messageKey: 'a', messageId: 'second try' };
      assert.equal((await publish(publisher, 'retried', '[]', query)).status, 400);
      assert.equal((await publish(publisher, 'retried', '{', query)).status, 400);
      assert.equal((await publish(publisher, 'retried', '{}', query)).body.duplicate, false);
    });

    it('is accepted once when many send it at the same time', async () => {
      for (let round = 0; round < 5; round += 1) {
        const query = { messageKey: 'k', messageId: `race-${round}` };
        const answers = await Promise.all(
          Array.from({ length: 30 }, (_value, n) => publish(publisher, 'race', { n }, query)),
        );
        assert.ok(answers.every(({ status }) => status === 200));
        assert.equal(answers.filter(({ body }) => !body.duplicate).length, 1);
      }
    });

    it('is a duplicate also after a crash', async () => {
      const first = await startService();
      let second: RunningService | undefined;
      try {
        const person = await newPerson(first);
        const organizationName = await newOrganization(first, person);
        const before = { url: first.url, token: person.accessToken, organizationName };
        const query = { messageKey: 'k', messageId: 'survivor' };
        assert.equal((await publish(before, 'crash', { n: 1 }, query)).body.duplicate, false);
        const batch = [{ id: 'b1' }, { id: 'b2' }];
        await publishMany(before, 'crash', batch, { messageIdPath: '/id' });
        const made = await publish(before, 'crash', {});
        await first.kill();
        second = await startService({ dataDirectory: first.dataDirectory });
        const after = { ...before, url: second.url };
        assert.equal((await publish(after, 'crash', { n: 2 }, query)).body.duplicate, true);
        const again = await publishMany(after, 'crash', [...batch, { id: 'b3' }], { messageIdPath: '/id' });
        assert.deepEqual([again.body.accepted, again.body.duplicates], [1, 2]);
        assert.notEqual((await publish(after, 'crash', {})).body.messageId, made.body.messageId);
      } finally {
        await second?.remove();
        await first.remove();
      }
    });
  });

  describe('and its size', { concurrency: true }, () => {
    it('may have a mebibyte and not one byte more, sent plain or zipped', async () => {
      const most = objectOf(mebibyte);
      const zipped = { ...json, 'content-encoding': 'gzip' };
      assert.equal((await publish(publisher, 'sizes', most)).status, 200);
      assert.equal((await publish(publisher, 'sizes', gzipSync(most), key, zipped)).status, 200);
      for (const answer of [
        await publish(publisher, 'sizes', objectOf(mebibyte + 1)),
        await publish(publisher, 'sizes', gzipSync(objectOf(mebibyte + 1)), key, zipped),
      ]) {
        assert.deepEqual(refusal(answer), [413, 'BODY_TOO_LARGE']);
        assert.ok(answer.body.detail.includes(String(mebibyte)), answer.body.detail);
      }
    });

    it('is refused as too large when a small body unzips to more', async () => {
      const zipped = { ...json, 'content-encoding': 'gzip' };
      const bomb = gzipSync(objectOf(100 * mebibyte));
      assert.ok(bomb.byteLength < mebibyte / 4);
      for (const body of [gzipSync(objectOf(1.02 * mebibyte)), bomb]) {
        const answers = await Promise.all(
          Array.from({ length: 4 }, () => publish(publisher, 'bombs', body, key, zipped)),
        );
        for (const answer of answers) assert.deepEqual(refusal(answer), [413, 'BODY_TOO_LARGE']);
      }
    });

    it('is unzipped before it is kept, and refused when it is not what it says', async () => {
      const follower = await follow(publisher, 'zipped');
      const zip = (encoding: string, body: Uint8Array) =>
        publish(publisher, 'zipped', body, key, { ...json, 'content-encoding': encoding });
      const good = gzipSync('{"zipped":true}');
      assert.equal((await zip('gzip', good)).status, 200);
      assert.equal((await zip('GZIP', good)).status, 200);
      assert.equal((await zip('identity', Buffer.from('{"zipped":true}'))).status, 200);
      for (const body of [
        Buffer.from('{"a":1}'),
        good.subarray(0, -4),
        good.subarray(0, 12),
        Buffer.alloc(0),
        Buffer.concat([good.subarray(0, -8), Buffer.alloc(8)]),
        gzipSync(''),
        gzipSync('{'),
        gzipSync(good),
      ]) {
        assert.equal((await zip('gzip', body)).status, 400, body.toString('hex'));
      }
      for (const encoding of ['br', 'deflate', 'gzip, gzip', 'x', 'zstd']) {
        assert.deepEqual(refusal(await zip(encoding, good)), [415, 'MEDIA_TYPE_NOT_SUPPORTED'], encoding);
      }
      const seen = await follower.messages(3);
      assert.deepEqual(
        seen.map((message) => message.body),
        Array(3).fill({ zipped: true }),
      );
      follower.leave();
    });
  });

  describe('and who may publish it', { concurrency: true }, () => {
    it('goes with a restricted key only to the topics of the key, alone and in batches', async () => {
      const { organizationName, token } = publisher;
      const { secret } = await newApiKey(service, token, organizationName, {
        queueWhitelist: ['mine', 'also'],
      });
      const restricted = { ...publisher, token: secret };
      for (const topicName of ['mine', 'also']) {
        assert.equal((await publish(restricted, topicName, {})).status, 200);
        assert.equal((await publishMany(restricted, topicName, [{}])).status, 200);
        assert.equal((await publishMany(restricted, topicName, '{}', {}, lines)).status, 200);
      }
      for (const topicName of ['other', 'MINE', 'min', 'mine2', 'mine.', 'default']) {
        assert.equal((await publish(restricted, topicName, {})).status, 403, topicName);
        assert.equal((await publishMany(restricted, topicName, [{}])).status, 403, topicName);
      }
      const path = { organizationName, topicName: 'mine' };
      for (const id of ['getTopics', 'tail', 'deleteTopic'] as const) {
        assert.equal((await call(service.url, id, { token: secret, path })).status, 403, id);
      }
    });

    it('is told nothing of an organization it does not belong to', async () => {
      const outsider = await newPerson(service);
      const theirs = await newOrganization(service, outsider);
      const { secret } = await newApiKey(service, outsider.accessToken, theirs, { queueWhitelist: ['mine'] });
      for (const token of [outsider.accessToken, secret]) {
        for (const organizationName of [publisher.organizationName, 'nobody-has-this-name']) {
          const intruder = { ...publisher, token, organizationName };
          const answers = [
            await publish(intruder, 'mine', {}),
            await publish(intruder, 'mine', '['),
            await publish(intruder, 'mine', 'x', {}, { 'content-type': 'text/plain' }),
            await publishMany(intruder, 'mine', [{}]),
          ];
          for (const answer of answers) assert.equal(answer.status, 404);
          assert.equal(new Set(answers.map(({ body }) => body.code)).size, 1);
          assert.notEqual(answers[0]?.body.code, 'TOPIC_NOT_FOUND');
        }
      }
      assert.equal((await publish({ ...publisher, token: 'none' }, 'mine', {})).status, 401);
    });
  });
});
