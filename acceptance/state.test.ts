import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { BodyOf, Operations } from '@millrace/contract';
import { call, checkAnswer, contract, type ProblemBody, read } from './harness/client.ts';
import { join, newApiKey, newOrganization, newPerson, type Person } from './harness/people.ts';
import { type RunningService, startService } from './harness/service.ts';
import { eventually } from './harness/waiting.ts';

type Upsert = BodyOf<Operations['upsertState']>;
type List = BodyOf<Operations['listState']>;
type Increment = BodyOf<Operations['incrementState']>;

describe('state', { concurrency: true, timeout: 120_000 }, () => {
  let service: RunningService;
  let admin: Person;
  let organizationName: string;
  before(async () => {
    service = await startService();
    admin = await newPerson(service);
    organizationName = await newOrganization(service, admin);
  });
  after(() => service.remove());

  /** What is said to every operation, by the admin about the first organization unless told otherwise. */
  const told = (where = organizationName, token = admin.accessToken) => ({
    token,
    path: { organizationName: where },
  });
  const get = (keyParts: string[], as = told()) =>
    call(service.url, 'getState', { ...as, body: { keyParts } });
  const upsert = (body: Upsert, as = told()) => call(service.url, 'upsertState', { ...as, body });
  const remove = (keyParts: string[], as = told()) =>
    call(service.url, 'deleteState', { ...as, body: { keyParts } });
  const list = (body: List, as = told()) => call(service.url, 'listState', { ...as, body });
  const increment = (body: Increment, as = told()) => call(service.url, 'incrementState', { ...as, body });
  const put = async (keyParts: string[], attributes: Upsert['attributes'] = {}, as = told()) => {
    const answer = await upsert({ keyParts, attributes }, as);
    assert.equal(answer.status, 200, answer.text);
    return answer.body;
  };
  const pointers = (body: ProblemBody) => body.errors?.map((error) => error.pointer);

  async function listAll(keyPrefix: string[], limit: number, as = told()): Promise<string[][]> {
    const found: string[][] = [];
    let cursor: string | null | undefined;
    do {
      const page = await list({ keyPrefix, limit, ...(cursor ? { cursor } : {}) }, as);
      assert.equal(page.status, 200, page.text);
      assert.ok(page.body.entries.length <= limit);
      found.push(...page.body.entries.map((entry) => entry.keyParts));
      cursor = page.body.nextCursor;
    } while (cursor);
    return found;
  }

  /** Sends a body as it stands, for what JSON.stringify would not write. */
  async function send(id: 'upsertState' | 'getState' | 'listState', body: string) {
    const operation = contract.operations[id];
    const url = `${service.url}${operation.path.replace('{organizationName}', organizationName)}`;
    const headers = { authorization: `Bearer ${admin.accessToken}`, 'content-type': 'application/json' };
    const answer = await read(await fetch(url, { method: 'POST', headers, body }));
    checkAnswer({ ...operation, id }, answer);
    return answer;
  }

  describe('an entry', { concurrency: true }, () => {
    it('is written, read, replaced and deleted', async () => {
      const keyParts = ['life', '42'];
      const attributes = { visits: 7, tags: ['a', null, { deep: true }], text: 'Größe 漢字 🎈' };
      const written = await upsert({ keyParts, attributes });
      assert.equal(written.status, 200);
      assert.deepEqual(written.body, { keyParts, mergedKey: 'life:42', attributes, version: 1 });
      assert.deepEqual((await get(keyParts)).body, written.body);
      assert.deepEqual((await put(keyParts, { only: 1 })).version, 2);
      const replaced = await get(keyParts);
      assert.deepEqual([replaced.body.attributes, replaced.body.version], [{ only: 1 }, 2]);
      for (let time = 0; time < 2; time += 1) {
        const deleted = await remove(keyParts);
        assert.deepEqual([deleted.status, deleted.text], [204, '']);
        const missing = await get(keyParts);
        assert.deepEqual([missing.status, missing.body.code], [404, 'STATE_NOT_FOUND']);
      }
      assert.equal((await put(keyParts)).version, 1, 'made again, it begins again');
    });

    it('has a merged key in which colons and backslashes of parts are escaped', async () => {
      const keys: [string[], string][] = [
        [['esc', 'a:b'], 'esc:a\\:b'],
        [['esc', 'a', 'b'], 'esc:a:b'],
        [['esc', 'a\\', 'b'], 'esc:a\\\\:b'],
        [['esc', 'a\\:b'], 'esc:a\\\\\\:b'],
        [['esc:a', 'b'], 'esc\\:a:b'],
      ];
      for (const [keyParts, mergedKey] of keys) {
        assert.equal((await put(keyParts, { mergedKey })).mergedKey, mergedKey);
      }
      for (const [keyParts, mergedKey] of keys) {
        const { body } = await get(keyParts);
        assert.deepEqual([body.keyParts, body.version], [keyParts, 1]);
        assert.deepEqual(body.attributes, { mergedKey }, 'no two of them are one entry');
      }
    });

    it('keeps attributes of any name as they are, in their order', async () => {
      const attributes =
        '{"z":1,"__proto__":{"admin":true},"a":{"__proto__":1},"constructor":{"prototype":{"x":1}},"n":-1.5e-9,"":0}';
      const body = `{"keyParts":["names"],"attributes":${attributes}}`;
      const written = await send('upsertState', body);
      assert.equal(written.status, 200, written.text);
      assert.ok(written.text.includes(attributes), written.text);
      const found = await get(['names']);
      assert.ok(found.text.includes(attributes), found.text);
      const counted = await increment({ keyParts: ['names'], attribute: 'constructor' });
      assert.equal(counted.status, 400);
      assert.equal((await increment({ keyParts: ['names'], attribute: 'toString' })).status, 200);
      const other = await increment({ keyParts: ['other'], attribute: '__proto__' });
      assert.ok(other.text.includes('"attributes":{"__proto__":1}'), other.text);
      assert.deepEqual((await put(['plain'])).attributes, {});
    });

    it('is gone from the second it expires, and not before', async () => {
      const sent = Date.now();
      const written = await upsert({ keyParts: ['ttl'], attributes: {}, ttlInSec: 4 });
      const { ttlInEpochSec } = written.body;
      assert.ok(ttlInEpochSec);
      assert.ok(ttlInEpochSec >= Math.floor(sent / 1000) + 4);
      assert.ok(ttlInEpochSec <= Math.floor(Date.now() / 1000) + 4);
      await upsert({ keyParts: ['ttl', 'child'], attributes: {}, ttlInSec: 60 });
      let seen = 0;
      const goneAt = await eventually('the entry to expire', 10_000, async () => {
        const asked = Date.now();
        const { status } = await get(['ttl']);
        const answered = Date.now();
        if (status === 404) {
          assert.ok(answered >= ttlInEpochSec * 1000, 'it was gone too early');
          return asked;
        }
        seen += 1;
        assert.ok(asked < ttlInEpochSec * 1000, 'it was there too late');
        return undefined;
      });
      assert.ok(seen > 0 && goneAt > 0);
      assert.deepEqual(await listAll(['ttl'], 10), [['ttl', 'child']]);
      const again = await upsert({ keyParts: ['ttl'], attributes: {}, expectedVersion: 0 });
      assert.deepEqual([again.status, again.body.version], [200, 1]);
      assert.equal('ttlInEpochSec' in again.body, false);
    });

    it('is refused when its key or its attributes are past the limits', async () => {
      const limits = contract.limits;
      const attributes = {};
      const parts = (count: number) => Array.from({ length: count }, () => 'p');
      assert.equal((await upsert({ keyParts: parts(32), attributes })).status, 200);
      for (const keyParts of [['é'.repeat(512)], [':'.repeat(512)], ['x'.repeat(511), 'y'.repeat(512)]]) {
        assert.equal((await upsert({ keyParts, attributes })).status, 200);
      }
      const pastThem = [parts(33), [], ['é'.repeat(513)], [':'.repeat(513)], ['a'.repeat(1025)]];
      for (const keyParts of [...pastThem, ['x'.repeat(512), 'y'.repeat(512)]]) {
        for (const answer of [
          await upsert({ keyParts, attributes }),
          await get(keyParts),
          await remove(keyParts),
          await increment({ keyParts, attribute: 'n' }),
        ]) {
          assert.deepEqual([answer.status, answer.body.code], [400, 'VALIDATION_FAILED']);
          assert.match(pointers(answer.body)?.[0] ?? '', /^\/keyParts(\/0)?$/);
        }
      }
      for (const part of ['""', '"\\u0000"', '"\\ud800"', '1', 'null']) {
        const answer = await send('getState', `{"keyParts":["a",${part}]}`);
        assert.deepEqual([answer.status, pointers(answer.body)], [400, ['/keyParts/1']], part);
      }
      const text = (bytes: number) => ({ text: 'x'.repeat(bytes - '{"text":""}'.length) });
      const most = limits.stateAttributesBytes;
      assert.equal((await upsert({ keyParts: ['large'], attributes: text(most) })).status, 200);
      for (const attributes of [text(most + 1), { text: 'ä'.repeat(most / 2) }]) {
        const answer = await upsert({ keyParts: ['large'], attributes });
        assert.deepEqual([answer.status, answer.body.code], [413, 'BODY_TOO_LARGE']);
        assert.match(answer.body.detail, new RegExp(String(most)));
      }
      const grown = await increment({ keyParts: ['large'], attribute: 'n' });
      assert.equal(grown.status, 413);
      assert.equal((await get(['large'])).body.version, 1);
    });

    it('has as much room for clients that escape what is not ASCII, or everything', async () => {
      const escaped = (text: string) =>
        text.replace(/./gs, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
      const { limits } = contract;
      const most = limits.stateAttributesBytes - '{"t":""}'.length;
      for (const text of ['é'.repeat(most / 2), 'x'.repeat(most), '\u0001'.repeat(Math.floor(most / 6))]) {
        const body = `{"keyParts":["escaped"],"attributes":{"t":"${escaped(text)}"}}`;
        const answer = await send('upsertState', body);
        assert.equal(answer.status, 200, answer.text.slice(0, 200));
        assert.ok((await get(['escaped'])).body.attributes.t === text);
      }
      const body = `{"keyParts":["escaped"],"attributes":{"t":"${escaped('x'.repeat(most + 1))}"}}`;
      const answer = await send('upsertState', body);
      assert.deepEqual([answer.status, answer.body.code], [413, 'BODY_TOO_LARGE']);
      assert.match(answer.body.detail, new RegExp(`\\b${limits.stateAttributesBytes} bytes`));
    });

    it('is refused when JSON would lose a part of it', async () => {
      const number = await send('upsertState', '{"keyParts":["lost"],"attributes":{"a":[1e999]}}');
      assert.deepEqual([number.status, pointers(number.body)], [400, ['/attributes/a/0']]);
      const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`;
      const nested = await send('upsertState', `{"keyParts":["lost"],"attributes":{"deep":${deep}}}`);
      assert.deepEqual([nested.status, pointers(nested.body)], [400, ['/attributes']]);
      for (const attributes of ['[]', 'null', '"x"', '1']) {
        const answer = await send('upsertState', `{"keyParts":["lost"],"attributes":${attributes}}`);
        assert.deepEqual([answer.status, pointers(answer.body)], [400, ['/attributes']]);
      }
      assert.equal((await get(['lost'])).status, 404);
    });
  });

  describe('an expected version', { concurrency: true }, () => {
    it('is compared with the entry, and a mismatch names both and changes nothing', async () => {
      const keyParts = ['expected'];
      const expecting = (expectedVersion: number) =>
        upsert({ keyParts, attributes: { expectedVersion }, expectedVersion });
      const absent = await expecting(1);
      assert.deepEqual([absent.status, absent.body.code], [409, 'VERSION_MISMATCH']);
      assert.match(absent.body.detail, /version 1 .*version 0\b/);
      assert.equal((await expecting(0)).body.version, 1);
      const taken = await expecting(0);
      assert.equal(taken.status, 409);
      assert.match(taken.body.detail, /version 0 .*version 1\b/);
      assert.equal((await expecting(1)).body.version, 2);
      assert.equal((await expecting(1)).status, 409);
      assert.deepEqual((await get(keyParts)).body.attributes, { expectedVersion: 1 });
    });

    it('is met by one of several writers', async () => {
      const keyParts = ['writers'];
      for (let expectedVersion = 0; expectedVersion < 8; expectedVersion += 1) {
        const answers = await Promise.all(
          Array.from({ length: 8 }, (_, writer) =>
            upsert({ keyParts, attributes: { writer }, expectedVersion }),
          ),
        );
        const statuses = answers.map((answer) => answer.status).sort();
        assert.deepEqual(statuses, [200, ...Array(7).fill(409)]);
        const winner = answers.find((answer) => answer.status === 200);
        assert.deepEqual((await get(keyParts)).body, winner?.body);
      }
    });
  });

  describe('an increment', { concurrency: true }, () => {
    it('makes and adds to a number, by one unless told, and leaves the rest', async () => {
      const keyParts = ['count', 'one'];
      const made = await increment({ keyParts, attribute: 'n' });
      assert.equal(made.status, 200);
      const first = { keyParts, mergedKey: 'count:one', attributes: { n: 1 }, version: 1 };
      assert.deepEqual(made.body, first);
      assert.deepEqual((await get(keyParts)).body, first);
      await put(keyParts, { text: 'x', n: 1 });
      assert.deepEqual((await increment({ keyParts, attribute: 'n', by: -0.5 })).body.attributes, {
        text: 'x',
        n: 0.5,
      });
      const refused = await increment({ keyParts, attribute: 'text' });
      assert.deepEqual([refused.status, refused.body.code], [400, 'VALIDATION_FAILED']);
      assert.deepEqual(pointers(refused.body), ['/attribute']);
      assert.match(refused.body.detail, /"text" is a string/);
      assert.equal((await get(keyParts)).body.version, 3);
    });

    it('keeps when an entry expires, or says anew', async () => {
      const keyParts = ['count', 'ttl'];
      const made = await increment({ keyParts, attribute: 'n', ttlInSec: 100 });
      assert.ok(made.body.ttlInEpochSec);
      const kept = await increment({ keyParts, attribute: 'n' });
      assert.equal(kept.body.ttlInEpochSec, made.body.ttlInEpochSec);
      const longer = await increment({ keyParts, attribute: 'n', ttlInSec: 1000 });
      assert.ok(Number(longer.body.ttlInEpochSec) >= made.body.ttlInEpochSec + 899);
      assert.equal(
        'ttlInEpochSec' in (await increment({ keyParts: ['forever'], attribute: 'n' })).body,
        false,
      );
    });

    it('counts once for each of fifty at a time', async () => {
      const keyParts = ['count', 'many'];
      const versions = new Set<number>();
      await Promise.all(
        Array.from({ length: 50 }, async () => {
          for (let round = 0; round < 20; round += 1) {
            const answer = await increment({ keyParts, attribute: 'n', by: 2 });
            assert.equal(answer.status, 200, answer.text);
            assert.deepEqual(answer.body.attributes, { n: answer.body.version * 2 });
            versions.add(answer.body.version);
          }
        }),
      );
      assert.equal(versions.size, 1000);
      assert.deepEqual((await get(keyParts)).body.attributes, { n: 2000 });
    });
  });

  describe('a list', { concurrency: true }, () => {
    it('has the entries below whole leading parts, and all without a prefix', async () => {
      const as = told(await newOrganization(service, admin));
      const keys = [['a'], ['a', 'b'], ['a', 'b', 'c'], ['a-1'], ['a:b'], ['a\\', 'b'], ['ab'], ['b']];
      for (const key of keys) await put(key, {}, as);
      assert.deepEqual(await listAll(['a'], 1, as), [['a'], ['a', 'b'], ['a', 'b', 'c']]);
      assert.deepEqual(await listAll(['a', 'b'], 10, as), [
        ['a', 'b'],
        ['a', 'b', 'c'],
      ]);
      assert.deepEqual(await listAll(['a\\'], 10, as), [['a\\', 'b']]);
      assert.deepEqual(await listAll(['a', 'b', 'c', 'd'], 10, as), []);
      assert.equal((await listAll([], 3, as)).length, keys.length);
      const whole = await call(service.url, 'listState', as);
      assert.equal(whole.body.entries.length, keys.length);
      assert.equal('nextCursor' in whole.body, false);
      const entry = whole.body.entries[0];
      assert.deepEqual(entry, { keyParts: ['a'], mergedKey: 'a', attributes: {}, version: 1 });
    });

    it('has fifty entries unless told, and at most a thousand', async () => {
      const as = told(await newOrganization(service, admin));
      await Promise.all(Array.from({ length: 60 }, (_, index) => put(['page', String(index)], {}, as)));
      assert.equal((await list({}, as)).body.entries.length, 50);
      assert.equal((await list({ limit: 1000 }, as)).body.entries.length, 60);
      for (const limit of [0, 1001, -1, 1.5]) {
        const answer = await list({ limit }, as);
        assert.deepEqual([answer.status, pointers(answer.body)], [400, ['/limit']]);
      }
    });

    it('misses and repeats nothing that is there throughout, while others come and go', async () => {
      const as = told(await newOrganization(service, admin));
      const name = (index: number) => String(index).padStart(4, '0');
      const every = Array.from({ length: 1000 }, (_, index) => ['paging', name(index)]);
      for (let start = 0; start < every.length; start += 100) {
        await Promise.all(every.slice(start, start + 100).map((key) => put(key, { n: 1 }, as)));
      }
      const goes = (index: number) => index % 7 === 0;
      let paging = true;
      let changes = 0;
      const changing = (async () => {
        for (let index = 0; paging; index = (index + 13) % 1000) {
          await put(['paging', `${name(index)}+`], {}, as);
          await put(['paging', name(index + (goes(index) ? 1 : 0))], { changed: true }, as);
          if (goes(index)) await remove(['paging', name(index)], as);
          changes += 1;
        }
      })();
      try {
        for (const limit of [7, 40, 333]) {
          const found = (await listAll(['paging'], limit, as)).map((key) => key[1] ?? '');
          assert.equal(new Set(found).size, found.length, 'nothing is repeated');
          assert.deepEqual(found, found.toSorted(), 'pages follow each other');
          const seen = new Set(found);
          for (let index = 0; index < 1000; index += 1) {
            if (!goes(index)) assert.ok(seen.has(name(index)), `${name(index)} is listed`);
          }
        }
      } finally {
        paging = false;
        await changing;
      }
      assert.ok(changes > 10, `${changes} changes`);
    });

    it('goes on with its own cursor only', async () => {
      const as = told(await newOrganization(service, admin));
      for (const key of [['a'], ['a', '1'], ['a', '2'], ['b', '1']]) await put(key, {}, as);
      const first = await list({ keyPrefix: ['a'], limit: 1 }, as);
      const cursor = first.body.nextCursor;
      assert.ok(cursor);
      const second = await list({ keyPrefix: ['a'], limit: 2, cursor }, as);
      assert.deepEqual(
        second.body.entries.map((entry) => entry.mergedKey),
        ['a:1', 'a:2'],
      );
      assert.equal('nextCursor' in second.body, false);
      const other = told(await newOrganization(service, admin));
      const end = cursor.at(-1) === 'A' ? 'B' : 'A';
      const refused = [
        await list({ keyPrefix: ['b'], cursor }, as),
        await list({ cursor }, as),
        await list({ keyPrefix: ['a', '1'], cursor }, as),
        await list({ keyPrefix: ['a'], cursor }, other),
        await list({ keyPrefix: ['a'], cursor: `${cursor.slice(0, -1)}${end}` }, as),
        await list({ keyPrefix: ['a'], cursor: `${cursor}A` }, as),
        await list({ keyPrefix: ['a'], cursor: cursor.slice(1) }, as),
        await list({ keyPrefix: ['a'], cursor: 'YTox' }, as),
      ];
      for (const answer of refused) {
        assert.deepEqual([answer.status, answer.body.code], [400, 'TOKEN_INVALID']);
      }
      const empty = await list({ keyPrefix: ['a'], cursor: '' }, as);
      assert.deepEqual([empty.status, empty.body.code], [400, 'VALIDATION_FAILED']);
    });

    it('goes on with a cursor for the longest key there may be', async () => {
      const as = told(await newOrganization(service, admin));
      await put(['ü'.repeat(512)], {}, as);
      await put(['ý'.repeat(512)], {}, as);
      assert.equal((await listAll([], 1, as)).length, 2);
    });
  });

  describe('who may', { concurrency: true }, () => {
    it('read is every member, and write those who are more than viewers', async () => {
      const where = await newOrganization(service, admin);
      const [viewer, member] = [await newPerson(service), await newPerson(service)];
      await join(service, admin, where, viewer, 'VIEWER');
      await join(service, admin, where, member, 'MEMBER');
      await put(['a'], { n: 1 }, told(where, member.accessToken));
      const as = told(where, viewer.accessToken);
      assert.deepEqual((await get(['a'], as)).body.attributes, { n: 1 });
      assert.equal((await list({}, as)).body.entries.length, 1);
      for (const answer of [
        await upsert({ keyParts: ['a'], attributes: {} }, as),
        await remove(['a'], as),
        await increment({ keyParts: ['a'], attribute: 'n' }, as),
      ]) {
        assert.equal(answer.status, 403);
      }
      const whitelisted = await newApiKey(service, member.accessToken, where, { queueWhitelist: ['clicks'] });
      assert.equal((await get(['a'], told(where, whitelisted.secret))).status, 403);
      const key = await newApiKey(service, member.accessToken, where);
      assert.equal(
        (await increment({ keyParts: ['a'], attribute: 'n' }, told(where, key.secret))).body.version,
        2,
      );
    });

    it('see an entry is nobody outside, and another organization has its own', async () => {
      const where = await newOrganization(service, admin);
      const elsewhere = await newOrganization(service, admin);
      const outsider = await newPerson(service);
      await put(['secret'], { here: true }, told(where));
      assert.equal((await get(['secret'], told(elsewhere))).status, 404);
      assert.deepEqual((await list({}, told(elsewhere))).body.entries, []);
      await put(['secret'], { there: true }, told(elsewhere));
      await remove(['secret'], told(elsewhere));
      const found = await get(['secret'], told(where));
      assert.deepEqual([found.body.attributes, found.body.version], [{ here: true }, 1]);
      const as = told(where, outsider.accessToken);
      const answers = [await get(['secret'], as), await list({}, as), await remove(['secret'], as)];
      for (const answer of answers) {
        assert.deepEqual([answer.status, answer.body.code], [404, 'ORGANIZATION_NOT_FOUND']);
      }
    });
  });
});

describe('the state of a service', () => {
  it('is there after a crash, and its cursors go on', { timeout: 60_000 }, async () => {
    const first = await startService();
    let service = first;
    try {
      const admin = await newPerson(service);
      const path = { organizationName: await newOrganization(service, admin) };
      const { secret: token } = await newApiKey(service, admin.accessToken, path.organizationName);
      const written = await call(service.url, 'upsertState', {
        token,
        path,
        body: { keyParts: ['kept'], attributes: { n: 1 } },
      });
      const page = await Promise.all(
        ['a', 'b'].map((part) =>
          call(service.url, 'upsertState', { token, path, body: { keyParts: ['p', part], attributes: {} } }),
        ),
      );
      assert.ok(page.every((answer) => answer.status === 200));
      const begun = await call(service.url, 'listState', { token, path, body: { limit: 1 } });
      await service.kill();
      service = await startService({ dataDirectory: first.dataDirectory });
      const found = await call(service.url, 'getState', { token, path, body: { keyParts: ['kept'] } });
      assert.deepEqual(found.body, written.body);
      const cursor = begun.body.nextCursor ?? '';
      const rest = await call(service.url, 'listState', { token, path, body: { cursor } });
      assert.deepEqual(
        rest.body.entries.map((entry) => entry.mergedKey),
        ['p:a', 'p:b'],
      );
    } finally {
      await service.remove();
    }
  });
});
