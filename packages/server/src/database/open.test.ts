import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { inspect } from 'node:util';
import { systemClock } from '../platform/clock.ts';
import { openDatabase } from './open.ts';

describe('opening a database by its URL', { timeout: 30_000 }, () => {
  let dataDirectory: string;
  before(async () => {
    dataDirectory = await mkdtemp(join(tmpdir(), 'millrace-open-'));
  });
  after(() => rm(dataDirectory, { recursive: true }));

  const open = (url?: string) =>
    openDatabase({ url, dataDirectory, clock: systemClock, onFatal: assert.ifError });

  for (const [url, file] of [
    [undefined, 'millrace.db'],
    ['sqlite:', 'millrace.db'],
    ['sqlite:other.db', 'other.db'],
  ] as const) {
    test(`${url ?? 'nothing'} means the file ${file} in the data directory`, async () => {
      const database = await open(url);
      assert.equal(database.engine, 'sqlite');
      await database.check();
      await database.close();
      await stat(join(dataDirectory, file));
    });
  }

  test('a file that is not a database is refused by its name', async () => {
    await writeFile(join(dataDirectory, 'text.db'), 'this is a text and no database at all'.repeat(100));
    await assert.rejects(open('sqlite:text.db'), /text\.db cannot be opened: .*not a database/);
  });

  test('no error shows the password of a URL', async () => {
    const refusing = createServer().listen(0, '127.0.0.1');
    await once(refusing, 'listening');
    const address = refusing.address();
    assert.ok(address !== null && typeof address !== 'string');
    refusing.close();
    await once(refusing, 'close');
    const urls = [
      `postgres://millrace:hunter2@127.0.0.1:${address.port}/millrace`,
      'postgres://millrace:hunter2/with/slash@127.0.0.1:x/millrace',
      'postgres://millrace:hunter2@[broken/millrace',
      'mysql://millrace:hunter2@127.0.0.1/millrace',
      'millrace:hunter2',
    ];
    for (const url of urls) {
      await assert.rejects(open(url), (error) => {
        assert.ok(error instanceof Error);
        assert.match(error.message, /database/i);
        assert.doesNotMatch(inspect(error, { depth: 10, showHidden: true }), /hunter2/);
        return true;
      });
    }
  });
});
