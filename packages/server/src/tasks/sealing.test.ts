import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { systemRandom } from '../platform/random.ts';
import { sealing } from './sealing.ts';

describe('sealing', () => {
  const sealer = sealing('a secret of the service', systemRandom);

  it('gives back what was sealed, and seals the same text differently each time', () => {
    const sealed = sealer.seal('mr_secret', 'o1/t1');
    assert.equal(sealer.open(sealed, 'o1/t1'), 'mr_secret');
    assert.notEqual(sealer.seal('mr_secret', 'o1/t1'), sealed);
    assert.ok(!Buffer.from(sealed, 'base64url').includes('mr_secret'));
  });

  it('opens nothing that was altered, moved or sealed with another secret', () => {
    const sealed = sealer.seal('mr_secret', 'o1/t1');
    const bytes = Buffer.from(sealed, 'base64url');
    for (let index = 0; index < bytes.length; index += 1) {
      const altered = Buffer.from(bytes);
      altered[index] = (altered[index] ?? 0) ^ 1;
      assert.throws(() => sealer.open(altered.toString('base64url'), 'o1/t1'));
    }
    assert.throws(() => sealer.open(sealed, 'o1/t2'));
    assert.throws(() => sealing('another', systemRandom).open(sealed, 'o1/t1'));
    assert.throws(() => sealer.open('', 'o1/t1'));
  });
});
