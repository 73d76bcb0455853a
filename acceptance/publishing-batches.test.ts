import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import type { BodyOf, Operations } from '@millrace/contract';
import { type Answer, call } from './harness/client.ts';
import { follow } from './harness/follower.ts';
import { fresh, newOrganization, newPerson } from './harness/people.ts';
import { lines, type Publisher, publish, publishMany } from './harness/publisher.ts';
import { type RunningService, startService } from './harness/service.ts';

const mebibyte = 1024 * 1024;
const json = { 'content-type': 'application/json' };
const most = 10_000;

describe('a batch of messages', { concurrency: true, timeout: 120_000 }, () => {
  let service: RunningService;
  let publisher: Publisher;
  before(async () => {
    service = await startService();
    const admin = await newPerson(service);
    const organizationName = await newOrganization(service, admin);
    publisher = { url: service.url, token: admin.accessToken, organizationName };
  });
  after(() => service.remove());

  const define = async (topicName: string, body: BodyOf<Operations['updateTopic']>) => {
    const { url, token, organizationName } = publisher;
    const answer = await call(url, 'updateTopic', { token, path: { organizationName, topicName }, body });
    assert.equal(answer.status, 200, answer.text);
    return topicName;
  };
  const refusal = ({ status, body }: Answer) => [status, body.code];
  const counts = ({ body }: Answer<{ accepted: number; duplicates: number; rejected: number }>) => [
    body.accepted,
    body.duplicates,
    body.rejected,
  ];
  const none = { accepted: 0, duplicates: 0, rejected: 0, errors: [] };

  /** Publishes a batch to a topic of its own, and answers the bodies that a follower saw, as they were sent. */
  async function seen(body: unknown, headers: Record<string, string>, count: number): Promise<string[]> {
    const topicName = fresh('seen');
    const follower = await follow(publisher, topicName);
    const answer = await publishMany(publisher, topicName, body, {}, headers);
    assert.deepEqual(answer.body, { ...none, accepted: count }, answer.text);
    await follower.messages(count);
    follower.leave();
    return follower.texts().map((text) => /"body":(.*)\}$/s.exec(text)?.[1] ?? '');
  }

  describe('as lines', { concurrency: true }, () => {
    it('has one message in each line that is not blank, however lines end', async () => {
      const batches = [
        '{"n":1}\n{"n":2}\n{"n":3}\n',
        '{"n":1}\n{"n":2}\n{"n":3}',
        '{"n":1}\r\n{"n":2}\r\n{"n":3}\r\n',
        '\n\n{"n":1}\n\n \t\r\n{"n":2}\n  {"n":3}  \n\n\n',
        '\ufeff{"n":1}\n{"n":2}\n{"n":3}',
      ];
      for (const batch of batches) {
        const bodies = await seen(batch, lines, 3);
        assert.deepEqual(bodies.sort(), ['{"n":1}', '{"n":2}', '{"n":3}'], JSON.stringify(batch));
      }
    });

    it('may be empty', async () => {
      for (const batch of ['', '\n', ' \r\n\t\n ']) {
        const answer = await publishMany(publisher, 'empty', batch, {}, lines);
        assert.deepEqual([answer.status, answer.body], [200, none], JSON.stringify(batch));
      }
    });

    it('names each line that is no message by its place and accepts the others', async () => {
      const batch = ['{"n":1}', '{"n":', '', '[1]', '{"n":4}', 'text', '{"n":6}}', '{"n":7}'].join('\n');
      const { status, body } = await publishMany(publisher, 'mixed', batch, {}, lines);
      assert.equal(status, 200);
      assert.deepEqual([body.accepted, body.duplicates, body.rejected], [3, 0, 4]);
      assert.deepEqual(
        body.errors.map(({ index, code }) => [index, code]),
        [
          [1, 'MALFORMED_JSON'],
          [2, 'BODY_NOT_OBJECT'],
          [4, 'MALFORMED_JSON'],
          [5, 'MALFORMED_JSON'],
        ],
        'blank lines are no messages and have no place',
      );
      assert.ok(body.errors.every(({ message }) => message.length > 0));
    });

    it('refuses bytes that are no UTF-8 in the line that has them', async () => {
      const batch = Buffer.concat([
        Buffer.from('{"n":1}\n{"'),
        Buffer.from([0xff, 0xc0]),
        Buffer.from('":1}\n{"n":2}'),
      ]);
      const { body } = await publishMany(publisher, 'bytes', batch, {}, lines);
      assert.deepEqual([body.accepted, body.errors.map(({ index }) => index)], [2, [1]]);
    });
  });

  describe('as an array', { concurrency: true }, () => {
    it('has one message in each element, byte for byte', async () => {
      const elements = [
        '{"a":"],[{}\\"\\\\"}',
        '{"b":"\\\\"}',
        '{"c":[[],{"d":"}{,"}]}',
        '{"n":12345678901234567890,"x":1e400,"y":-0.0,"z":1.000}',
        '{"u":"\\ud83c\\udf88 🎈 \\u0000 \\u2028","é":"\u2028"}',
        '{"__proto__":{"polluted":true},"constructor":{"prototype":{}}}',
        '{"a":1,"a":2}',
        '{ "spaced" :\t[ 1 , 2 ] }',
        '{}',
      ];
      for (const batch of [
        `[${elements.join(',')}]`,
        ` \r\n[ ${elements.join(' ,\n\t')} ]\r\n `,
        `\ufeff[${elements.join(',')}]`,
      ]) {
        assert.deepEqual((await seen(batch, json, elements.length)).sort(), [...elements].sort());
      }
    });

    it('may be empty', async () => {
      for (const batch of ['[]', ' [ \n ] ', '']) {
        assert.deepEqual((await publishMany(publisher, 'empty', batch)).body, none);
      }
    });

    it('is refused whole when it is no JSON array, and nothing of it is accepted', async () => {
      const topicName = fresh('whole');
      const follower = await follow(publisher, topicName);
      const malformed = [
        ' ',
        '[',
        ']',
        '{}',
        '"[]"',
        'null',
        '[{"n":1}',
        '{"n":1}]',
        '[{"n":1},]',
        '[,{"n":1}]',
        '[{"n":1},,{"n":2}]',
        '[{"n":1} {"n":2}]',
        '[{"n":1}],[{"n":2}]',
        '[{"n":1}][{"n":2}]',
        '[{"n":1}]]',
        '[[{"n":1}]',
        '[{"n":1},{"n":[2}]]',
        '[{"n":1},{"n":2]',
        '[{"n":1},{"n":2}}]',
        '[{"n":1]},{"n":2}]',
        '[{"n":1},"]',
        '[{"n":1},"\\"]',
        '[{"n":1},{"n":"2}]',
        '[{"n":1},nothing]',
        '[{"n":1}]\0',
        '[{"n":1},{"n":NaN}]',
        '[{"n":1},{"n":"\n"}]',
        '{"n":1}\n{"n":2}',
        Buffer.concat([Buffer.from('[{"n":1},"'), Buffer.from([0xff]), Buffer.from('"]')]),
      ];
      for (const batch of malformed) {
        const answer = await publishMany(publisher, topicName, batch);
        assert.deepEqual(refusal(answer), [400, 'MALFORMED_JSON'], String(batch));
      }
      await publish(publisher, topicName, { last: true });
      assert.deepEqual((await follower.messages(1))[0]?.body, { last: true }, 'the first one heard of');
      follower.leave();
    });

    it('names each element that is no message by its place and accepts the others', async () => {
      const batch = [{ n: 0 }, 1, 'text', null, [], { n: 5 }, true];
      const { body } = await publishMany(publisher, 'mixed', batch);
      assert.deepEqual([body.accepted, body.rejected], [2, 5]);
      assert.deepEqual(
        body.errors.map(({ index, code }) => `${index} ${code}`),
        [1, 2, 3, 4, 6].map((index) => `${index} BODY_NOT_OBJECT`),
      );
    });

    it('may hold any JSON for a topic with only streams', async () => {
      const topicName = await define(fresh('any'), { streams: [{ name: 'raw' }] });
      const follower = await follow(publisher, topicName);
      const batch = [1, 'text', null, [], { n: 5 }, true];
      assert.deepEqual(counts(await publishMany(publisher, topicName, batch)), [6, 0, 0]);
      assert.deepEqual(counts(await publishMany(publisher, topicName, '7\n"x"\nno', {}, lines)), [2, 0, 1]);
      const bodies = (await follower.messages(8)).map((message) => JSON.stringify(message.body));
      assert.deepEqual(new Set(bodies), new Set([...batch, 7, 'x'].map((each) => JSON.stringify(each))));
      follower.leave();
    });
  });

  describe('and its keys and ids', { concurrency: true }, () => {
    /** The keys that messages got, in the order of the batch; undefined for those that were refused. */
    async function keysOf(messageKeyPath: string, batch: string): Promise<(string | undefined)[]> {
      const topicName = fresh('keyed');
      const follower = await follow(publisher, topicName);
      const { body, status, text } = await publishMany(publisher, topicName, batch, { messageKeyPath });
      assert.equal(status, 200, text);
      const refused = new Map(body.errors.map(({ index, code }) => [index, code]));
      assert.ok([...refused.values()].every((code) => code === 'VALIDATION_FAILED'));
      const messages = await follower.messages(body.accepted);
      follower.leave();
      const byPlace = new Map(messages.map((message) => [JSON.stringify(message.body), message.messageKey]));
      return JSON.parse(batch).map((each: unknown) => byPlace.get(JSON.stringify(each)));
    }

    it('are read where a pointer says, with its escapes', async () => {
      const batch =
        '[{"a":{"b":["x",{"c":"deep"}]},"m~n":"tilde","s/t":"slash","~1":"both","":"empty","0":"zero"}]';
      const pointers = {
        '/a/b/0': 'x',
        '/a/b/1/c': 'deep',
        '/m~0n': 'tilde',
        '/s~1t': 'slash',
        '/~01': 'both',
        '/': 'empty',
        '/0': 'zero',
        '/a/b/00': undefined,
        '/a/b/2': undefined,
        '/a/b/-': undefined,
        '/a/b/length': undefined,
        '/a/b': undefined,
        '/a/b/0/length': undefined,
        '/a/': undefined,
        '/constructor/name': undefined,
        '/toString': undefined,
        '/__proto__': undefined,
      };
      for (const [pointer, expected] of Object.entries(pointers)) {
        assert.deepEqual(await keysOf(pointer, batch), [expected], pointer);
      }
    });

    it('refuse pointers that are none', async () => {
      for (const pointer of ['', 'user', '#/user', '/~2', '/a~', 'user/id', '/a'.repeat(600)]) {
        for (const name of ['messageKeyPath', 'messageIdPath']) {
          const answer = await publishMany(publisher, 'pointers', [{}], { [name]: pointer });
          assert.equal(answer.status, 400, pointer);
          assert.match(answer.text, new RegExp(`"pointer":"/query/${name}"`));
        }
      }
    });

    it('are texts, numbers or booleans, and a message without one is refused by its place', async () => {
      const long = 'k'.repeat(1024);
      const emoji = '🎈'.repeat(1024);
      const values = `"text", 7, -0.5, true, false, null, {"x":1}, ["x"], "", "${long}", "${long}k", "a\\u0000b", " ", "${emoji}", "\\ud800"`;
      const batch = `[${values.split(', ').map((value, n) => `{"n":${n},"k":${value}}`)}, {"n":"none"}]`;
      assert.deepEqual(await keysOf('/k', batch), [
        'text',
        '7',
        '-0.5',
        'true',
        'false',
        undefined,
        undefined,
        undefined,
        undefined,
        long,
        undefined,
        undefined,
        ' ',
        emoji,
        undefined,
        undefined,
      ]);
    });

    it('keep every digit of a number, so that no two ids become one', async () => {
      const ids = [
        '1234567890123456789',
        '1234567890123456788',
        '9007199254740993',
        '9007199254740992',
        '1e400',
        '1e401',
      ];
      const fractions = ['0.1', '0.10000000000000000001'];
      const batch = `[${[...ids, ...fractions].map((id) => `{"id":${id}}`)}]`;
      const topicName = fresh('digits');
      const follower = await follow(publisher, topicName);
      const sent = () => publishMany(publisher, topicName, batch, { messageIdPath: '/id' });
      assert.deepEqual(counts(await sent()), [8, 0, 0]);
      assert.deepEqual(counts(await sent()), [0, 8, 0]);
      const messages = await follower.messages(8);
      assert.deepEqual(messages.map((message) => message.messageId).sort(), [...ids, ...fractions].sort());
      follower.leave();
      const deep = `[{"id":0.5,"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}]`;
      assert.deepEqual(
        counts(await publishMany(publisher, topicName, deep, { messageIdPath: '/id' })),
        [0, 0, 1],
      );
    });

    it('own fields of any name and no inherited ones', async () => {
      const batch = '[{"__proto__":{"id":"own"}},{"id":"x"}]';
      assert.deepEqual(await keysOf('/__proto__/id', batch), ['own', undefined]);
      assert.deepEqual(await keysOf('/constructor', '[{"constructor":"own"},{}]'), ['own', undefined]);
    });

    it('are made up when nothing is said of them, and no message is a duplicate then', async () => {
      const topicName = fresh('anonymous');
      const follower = await follow(publisher, topicName);
      const batch = Array.from({ length: 40 }, () => ({ same: true }));
      for (let time = 0; time < 2; time += 1) {
        assert.deepEqual(counts(await publishMany(publisher, topicName, batch)), [40, 0, 0]);
      }
      const messages = await follower.messages(80);
      assert.equal(new Set(messages.map((message) => message.messageId)).size, 80);
      follower.leave();
    });

    it('find duplicates within a batch, across batches and of single messages', async () => {
      const paths = { messageIdPath: '/id', messageKeyPath: '/user' };
      const first = [
        { id: 'a', user: 1 },
        { id: 'b', user: 2 },
        { id: 'a', user: 3 },
        { id: 'a' },
        { user: 5 },
        { id: 'c', user: 1 },
      ];
      const answer = await publishMany(publisher, 'twice', first, paths);
      assert.deepEqual(counts(answer), [3, 1, 2]);
      assert.deepEqual(
        answer.body.errors.map(({ index }) => index),
        [3, 4],
      );
      const second = [{ id: 'c', user: 1 }, { id: 'd', user: 1 }, { id: 'b' }];
      assert.deepEqual(counts(await publishMany(publisher, 'twice', second, paths)), [1, 1, 1]);
      const one = (messageId: string) => publish(publisher, 'twice', {}, { messageKey: 'k', messageId });
      assert.equal((await one('d')).body.duplicate, true);
      assert.equal((await one('e')).body.duplicate, false);
      assert.deepEqual(
        counts(await publishMany(publisher, 'twice', [{ id: 'e', user: 1 }], paths)),
        [0, 1, 0],
      );
      assert.deepEqual(
        counts(await publishMany(publisher, 'Twice', [{ id: 'e', user: 1 }], paths)),
        [1, 0, 0],
      );
    });

    it('accept each message once when many send the same batch', async () => {
      const batch = Array.from({ length: 50 }, (_value, n) => ({ id: `r${n}` }));
      const answers = await Promise.all(
        Array.from({ length: 10 }, () => publishMany(publisher, 'raced', batch, { messageIdPath: '/id' })),
      );
      assert.equal(
        answers.reduce((sum, { body }) => sum + body.accepted, 0),
        50,
      );
      assert.equal(
        answers.reduce((sum, { body }) => sum + body.duplicates, 0),
        450,
      );
    });
  });

  describe('and its size', { concurrency: true }, () => {
    it('may have ten thousand messages and not one more', async () => {
      const batch = Array.from({ length: most }, (_value, n) => `{"n":${n}}`);
      const asArray = (elements: string[]) => `[${elements.join(',')}]`;
      const more = [...batch, '{}'];
      assert.deepEqual(counts(await publishMany(publisher, 'many', asArray(batch))), [most, 0, 0]);
      assert.deepEqual(counts(await publishMany(publisher, 'many', batch.join('\n'), {}, lines)), [
        most,
        0,
        0,
      ]);
      for (const answer of [
        await publishMany(publisher, 'many', asArray(more)),
        await publishMany(publisher, 'many', more.join('\n'), {}, lines),
        await publishMany(publisher, 'many', '0\n'.repeat(4 * mebibyte), {}, lines),
      ]) {
        assert.deepEqual(refusal(answer), [413, 'BODY_TOO_LARGE']);
        assert.ok(answer.body.detail.includes(String(most)), answer.body.detail);
      }
    });

    it('may have sixteen mebibytes of messages of one mebibyte, plain or zipped, and not a byte more', async () => {
      const line = (bytes: number) => `{"a":"${'x'.repeat(bytes - 8)}"}`;
      const full = `${line(mebibyte - 1)}\n`.repeat(16);
      assert.equal(full.length, 16 * mebibyte);
      const zipped = { ...lines, 'content-encoding': 'gzip' };
      assert.deepEqual(counts(await publishMany(publisher, 'large', full, {}, lines)), [16, 0, 0]);
      assert.deepEqual(counts(await publishMany(publisher, 'large', gzipSync(full), {}, zipped)), [16, 0, 0]);
      for (const answer of [
        await publishMany(publisher, 'large', `${full}\n`, {}, lines),
        await publishMany(publisher, 'large', gzipSync(`${full}\n`), {}, zipped),
        await publishMany(publisher, 'large', gzipSync(' '.repeat(200 * mebibyte)), {}, zipped),
      ]) {
        assert.deepEqual(refusal(answer), [413, 'BODY_TOO_LARGE']);
        assert.ok(answer.body.detail.includes(String(16 * mebibyte)), answer.body.detail);
      }
      const one = [line(mebibyte), line(mebibyte + 1), line(9)];
      for (const [batch, headers] of [
        [one.join('\n'), lines],
        [`[${one.join(',')}]`, json],
      ] as const) {
        const answer = await publishMany(publisher, 'large', batch, {}, headers);
        assert.deepEqual(counts(answer), [2, 0, 1]);
        assert.deepEqual(
          answer.body.errors.map(({ index, code }) => [index, code]),
          [[1, 'BODY_TOO_LARGE']],
        );
      }
    });

    it('is unzipped before it is read, and refused when it is not what it says', async () => {
      const zip = (headers: Record<string, string>, body: Uint8Array) =>
        publishMany(publisher, 'zipped', body, {}, { ...headers, 'content-encoding': 'gzip' });
      const good = gzipSync('[{"n":1},{"n":2}]');
      assert.deepEqual(counts(await zip(json, good)), [2, 0, 0]);
      assert.deepEqual(counts(await zip(lines, gzipSync('{"n":1}\n{"n":2}\n{'))), [2, 0, 1]);
      const parts = Buffer.concat([gzipSync('{"n":1}\n'), gzipSync('{"n":2}\n')]);
      assert.deepEqual(counts(await zip(lines, parts)), [2, 0, 0], 'zipped in parts');
      for (const body of [Buffer.from('[{"n":1}]'), good.subarray(0, -1), good.subarray(0, 5)]) {
        assert.equal((await zip(json, body)).status, 400);
      }
    });
  });

  it('is refused under another media type', async () => {
    for (const type of [
      'text/plain',
      'application/octet-stream',
      'application/json; charset=latin1',
      'text/csv',
    ]) {
      const answer = await publishMany(publisher, 'types', [{}], {}, { 'content-type': type });
      assert.deepEqual(refusal(answer), [415, 'MEDIA_TYPE_NOT_SUPPORTED'], type);
    }
    assert.equal((await publishMany(publisher, 'types', [{}], {}, {})).status, 415);
  });

  it('is refused whole for a topic that may not be', async () => {
    const { url, token } = publisher;
    const organizationName = fresh('closed');
    const path = { organizationName };
    await call(url, 'createOrganization', { token, query: path });
    await call(url, 'updateDefaultTopic', { token, path, body: { allowUndefined: false } });
    const answer = await publishMany({ ...publisher, organizationName }, 'nowhere', [{}]);
    assert.deepEqual(refusal(answer), [404, 'TOPIC_NOT_FOUND']);
  });
});
