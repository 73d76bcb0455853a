import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Database } from '../database/database.ts';
import { openDatabase } from '../database/open.ts';
import { adjustableClock } from '../platform/clock.ts';
import { Attempts, addressPrefix } from './attempts.ts';

describe('limits on guessing', () => {
  const clock = adjustableClock(1_794_700_800_000);
  let directory: string;
  let database: Database;
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'millrace-attempts-'));
    database = await openDatabase({ dataDirectory: directory, clock, onFatal: assert.fail });
  });
  after(async () => {
    await database.close();
    await rm(directory, { recursive: true });
  });

  const attempts = () => new Attempts(database, clock, 'pepper');
  const guess = (account: string, address: string, known = false) =>
    ({ secret: 'password', login: account, account, address, known }) as const;

  it('let a few guesses through, however many are made at once, and one more every minute', async () => {
    const one = guess('a', '192.0.2.1');
    const answers = await Promise.all(Array.from({ length: 50 }, () => attempts().pay(one)));
    assert.equal(answers.filter((answer) => answer === undefined).length, 10);
    const refused = await attempts().pay(one);
    assert.equal(refused?.code, 'TOO_MANY_ATTEMPTS');
    assert.ok((refused?.retryAfterSeconds ?? 0) <= 60);
    clock.advance(60_000);
    assert.equal(await attempts().pay(one), undefined);
    assert.notEqual(await attempts().pay(one), undefined);
  });

  it('do not count a guess that was right', async () => {
    const one = guess('b', '192.0.2.2');
    for (let count = 0; count < 100; count += 1) {
      assert.equal(await attempts().pay(one), undefined);
      await attempts().refund(one);
    }
  });

  it('stop a guess spread over many addresses, except where the owner has been before', async () => {
    let refused = 0;
    for (let host = 1; host <= 130; host += 1) {
      if ((await attempts().pay(guess('c', `198.51.100.${host}`))) !== undefined) refused += 1;
    }
    assert.equal(refused, 30);
    assert.equal(await attempts().pay(guess('c', '203.0.113.7', true)), undefined);
  });

  it('stop an address that tries many accounts', async () => {
    let refused = 0;
    for (let account = 0; account < 320; account += 1) {
      if ((await attempts().pay(guess(`d${account}`, '192.0.2.4'))) !== undefined) refused += 1;
    }
    assert.equal(refused, 20);
    assert.equal(await attempts().pay(guess('d0', '192.0.2.5')), undefined);
  });

  it('keep nothing that tells who tried what from where', async () => {
    const rows = await database.query.selectFrom('token_buckets').selectAll().execute();
    assert.ok(rows.length > 0);
    for (const row of rows) assert.match(row.key, /^[A-Za-z0-9_-]{43}$/);
    clock.advance(86_400_000);
    await attempts().sweep();
    assert.deepEqual(await database.query.selectFrom('token_buckets').selectAll().execute(), []);
  });

  it('count an IPv6 network of one subscriber as one address', () => {
    assert.equal(addressPrefix('192.0.2.1'), '192.0.2.1');
    assert.equal(addressPrefix('::ffff:192.0.2.1'), '192.0.2.1');
    assert.equal(addressPrefix('2001:db8:1:2:3:4:5:6'), '2001:db8:1:2');
    assert.equal(addressPrefix('2001:0DB8:0001:2::9'), '2001:db8:1:2');
    assert.equal(addressPrefix('2001:db8::1'), '2001:db8:0:0');
    assert.equal(addressPrefix('::1'), '0:0:0:0');
    assert.equal(addressPrefix('fe80::1%eth0'), 'fe80:0:0:0');
  });
});
