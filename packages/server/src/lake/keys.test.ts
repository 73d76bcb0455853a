import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseKey } from '../objects/key.ts';
import { systemRandom } from '../platform/random.ts';
import { hourFolder, keyRange, newFileKey, objectKeyOf, ownerOf, pathInOrganization } from './keys.ts';

describe('the keys of files', () => {
  const hour = Date.UTC(2026, 0, 5, 7);
  const folder = 'organization=acme/topic=a.b-c_d/';

  it('say whose they are and of which hour, and sort by time', () => {
    const key = newFileKey('acme', 'a.b-c_d', hour, systemRandom);
    assert.match(
      key,
      /^organization=acme\/topic=a\.b-c_d\/year=2026\/month=01\/day=05\/hour=07\/\w{22}\.parquet$/,
    );
    assert.deepEqual(ownerOf(key), { organizationName: 'acme', topicName: 'a.b-c_d' });
    assert.ok(pathInOrganization(key).startsWith('topic=a.b-c_d/year=2026/'));
    assert.ok(parseKey(objectKeyOf(key)).ok);
    const later = [1, 24, 24 * 31, 24 * 365].map((hours) =>
      hourFolder('acme', 'a', hour + hours * 3_600_000),
    );
    assert.deepEqual(later.toSorted(), later);
    assert.equal(ownerOf('organization=acme/readme'), undefined);
  });

  it('have the longest names that there may be', () => {
    const key = newFileKey('o'.repeat(64), 't'.repeat(128), hour, systemRandom);
    assert.ok(parseKey(objectKeyOf(key)).ok);
  });

  it('are found by their start in full or after the folder of the topic', () => {
    const from = (prefix: string) => keyRange('acme', 'a.b-c_d', prefix)?.from;
    for (const prefix of ['', 'o', 'organization=acme/', folder.slice(0, -1), folder]) {
      assert.equal(from(prefix), folder);
    }
    assert.equal(from(`${folder}year=20`), `${folder}year=20`);
    assert.equal(from('year=20'), `${folder}year=20`);
    assert.equal(from('organization=other'), `${folder}organization=other`, 'which no file has');
    for (const prefix of ['%', '漢', 'a b', "'", '\\']) assert.equal(from(prefix), undefined);
  });
});
