import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Database } from './database.ts';

/** What every engine must do with announcements on one node. */
export function announcementSuite(open: () => Database): void {
  test('an announcement is heard on its channel before announcing returns', async () => {
    const database = open();
    const heard: string[] = [];
    const stop = database.listen('keys', (payload) => heard.push(`first ${payload}`));
    database.listen('keys', (payload) => heard.push(`second ${payload}`));
    database.listen('members', (payload) => heard.push(`other ${payload}`));
    await database.announce('keys', 'revoked\nk1');
    assert.deepEqual(heard, ['first revoked\nk1', 'second revoked\nk1']);
    stop();
    await database.announce('keys', '');
    assert.deepEqual(heard.slice(2), ['second ']);
  });

  test('a listener that throws does not keep the others from hearing', async () => {
    const database = open();
    const heard: string[] = [];
    database.listen('keys', () => {
      throw new Error('deaf');
    });
    database.listen('keys', (payload) => heard.push(payload));
    await assert.rejects(database.announce('keys', 'k1'), /deaf/);
    assert.deepEqual(heard, ['k1']);
  });

  test('an announcement too large for some engine is refused by all', async () => {
    const database = open();
    await database.announce('keys', '"'.repeat(4_000));
    await assert.rejects(database.announce('keys', 'ü'.repeat(2_001)), RangeError);
    await assert.rejects(database.announce('keys', '\0'), RangeError);
    await assert.rejects(database.announce('a\nb', 'k1'), RangeError);
    await assert.rejects(database.announce('', 'k1'), RangeError);
  });
}
