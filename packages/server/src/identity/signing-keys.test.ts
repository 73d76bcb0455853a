import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Database } from '../database/database.ts';
import { openDatabase } from '../database/open.ts';
import { adjustableClock } from '../platform/clock.ts';
import { systemRandom } from '../platform/random.ts';
import { SigningKeys } from './signing-keys.ts';
import { Tokens } from './tokens.ts';

const day = 86_400_000;

describe('signing keys', () => {
  const clock = adjustableClock(1_794_700_800_000);
  let directory: string;
  let database: Database;
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'millrace-keys-'));
    database = await openDatabase({ dataDirectory: directory, clock, onFatal: assert.fail });
  });
  after(async () => {
    await database.close();
    await rm(directory, { recursive: true });
  });

  const node = () => new SigningKeys({ database, clock, random: systemRandom, lifetimeDays: 30 });
  const tokensOf = (keys: SigningKeys) =>
    new Tokens({ keys, clock, random: systemRandom, issuer: 'test', lifetimeSeconds: 900 });
  const subject = { accountId: 'a', sessionId: 's', username: 'ada', email: 'ada@example.com' };

  it('are one for all nodes, also when they start at the same moment', async () => {
    const nodes = [node(), node(), node()];
    const keys = await Promise.all(nodes.map((each) => each.current()));
    assert.equal(new Set(keys.map((key) => key.id)).size, 1);
  });

  it('rotate: the new one signs, the old one verifies until its tokens are dead', async () => {
    const one = node();
    const other = node();
    const first = await one.current();
    clock.advance(30 * day - 60_000);
    const { accessToken } = await tokensOf(one).issue(subject);
    clock.advance(60_000);
    const second = await one.current();
    assert.notEqual(second.id, first.id);
    assert.equal((await other.current()).id, second.id);
    assert.deepEqual(
      (await one.published()).map((key) => key.kid),
      [second.id, first.id],
    );
    assert.equal((await tokensOf(other).verify(accessToken))?.sessionId, 's');
    clock.advance(2 * day);
    assert.deepEqual(
      (await one.published()).map((key) => key.kid),
      [second.id],
    );
    assert.equal(await tokensOf(other).verify(accessToken), undefined);
  });

  it('are published without their private part', async () => {
    for (const key of await node().published()) {
      assert.deepEqual(Object.keys(key).sort(), ['alg', 'crv', 'kid', 'kty', 'use', 'x']);
    }
  });

  it('are verified by a node that has not heard of a new one yet', async () => {
    const late = node();
    await late.current();
    clock.advance(31 * day);
    const early = node();
    const { accessToken } = await tokensOf(early).issue(subject);
    assert.equal((await tokensOf(late).verify(accessToken))?.accountId, 'a');
  });
});
