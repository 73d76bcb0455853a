import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { project } from './projection.ts';

describe('the projection of a message into state', () => {
  const store = {
    keys: [
      { tableType: 'PRIMARY' as const, pkParts: ['user'], skParts: ['at'], rangePrefix: 'visit' },
      { tableType: 'GSI' as const, indexNumber: 1, pkParts: ['page'], rangePrefix: '' },
      {
        tableType: 'LSI' as const,
        indexNumber: 2,
        pkParts: ['user', 'page'],
        skParts: ['ok'],
        rangePrefix: 'x',
      },
    ],
    ttlInSec: 60,
  };
  const message = { user: 'u1', at: 1700, page: '/pricing', ok: true, secret: 's' };

  it('is one entry for each key, under the topic, the table and the values of its fields', () => {
    const entries = project('clicks', store, message);
    assert.ok(!('missing' in entries));
    assert.deepEqual(
      entries.map((entry) => entry.keyParts),
      [
        ['clicks', 'PRIMARY', 'u1', 'visit', '1700'],
        ['clicks', 'GSI1', '/pricing'],
        ['clicks', 'LSI2', 'u1', '/pricing', 'x', 'true'],
      ],
    );
    for (const entry of entries) {
      assert.deepEqual(entry.attributes, message);
      assert.equal(entry.ttlInSec, 60);
    }
  });

  it('keeps only fields on the whitelist and none on the blacklist', () => {
    const attributes = (more: object) => {
      const entries = project('clicks', { ...store, ...more }, message);
      return 'missing' in entries ? undefined : entries[0]?.attributes;
    };
    assert.deepEqual(attributes({ whitelist: ['page', 'ok'] }), { page: '/pricing', ok: true });
    assert.deepEqual(attributes({ blacklist: ['secret', 'at'] }), { user: 'u1', page: '/pricing', ok: true });
    assert.deepEqual(attributes({ whitelist: ['page', 'secret'], blacklist: ['secret'] }), {
      page: '/pricing',
    });
  });

  it('says which key field a message lacks, or has no use for', () => {
    for (const value of [undefined, null, '', {}, [], ['u1']]) {
      assert.deepEqual(project('clicks', store, { ...message, user: value }), { missing: 'user' });
    }
    const inherited = {
      keys: [{ tableType: 'PRIMARY' as const, pkParts: ['toString'], rangePrefix: '' }],
      ttlInSec: 1,
    };
    assert.deepEqual(project('clicks', inherited, {}), { missing: 'toString' });
  });
});
