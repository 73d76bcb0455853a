import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Passwords, passwordWeakness } from './passwords.ts';

describe('passwords', () => {
  const passwords = new Passwords();

  it('are hashed with argon2id at 19 MiB, two passes and one lane', async () => {
    const encoded = await passwords.hash('correct horse battery staple');
    assert.match(encoded ?? '', /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
  });

  it('are right or wrong, whatever the Unicode form they were typed in', async () => {
    const encoded = await passwords.hash('caf\u00e9 au lait bien chaud');
    assert.equal(await passwords.verify(encoded, 'cafe\u0301 au lait bien chaud'), 'right');
    assert.equal(await passwords.verify(encoded, 'cafe au lait bien chaud'), 'wrong');
  });

  it('of unknown accounts are always wrong, also the decoy itself', async () => {
    assert.equal(await passwords.verify(undefined, 'decoy'), 'wrong');
  });

  it('are refused at once when too many wait', async () => {
    const busy = new Passwords();
    const checks = await Promise.all(Array.from({ length: 300 }, () => busy.verify(undefined, 'x')));
    assert.ok(checks.includes('busy'));
  });

  it('that are common, short, repeated, sequences or names are weak', async () => {
    const person = { username: 'ada.lovelace.1815', email: 'ada@example.com' };
    const weak = [
      'short1!',
      'password',
      'PASSWORD1',
      'qwertyuiop',
      'iloveyou1',
      'letmein123!',
      'aaaaaaaaaaaa',
      'abababababab',
      'abcdefghijklm',
      '98765432',
      'Ada.Lovelace.1815',
      'ADA@example.com',
    ];
    for (const password of weak) assert.ok(await passwordWeakness(password, person), password);
    for (const password of [
      'correct horse battery staple',
      'tr0ub4dor&3xyz',
      'Gr\u00fcn-8-B\u00e4ume',
      'k2#Pq9vLw',
    ]) {
      assert.equal(await passwordWeakness(password, person), undefined, password);
    }
  });
});
