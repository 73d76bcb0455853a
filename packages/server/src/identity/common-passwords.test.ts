import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { it } from 'node:test';
import { dictionary } from '@zxcvbn-ts/language-common';
import { commonPasswordFile, isCommonPassword, packCommonPasswords } from './common-passwords.ts';

it('the common passwords are those of the package, and are found', async () => {
  const words = dictionary['passwords-common'];
  assert.deepEqual(await readFile(commonPasswordFile), packCommonPasswords(words));
  const long = words.filter((word) => word.length >= 6);
  assert.ok(long.length > 30_000);
  for (const index of [0, 1, 5, 1000, 20_000, long.length - 1]) {
    assert.equal(await isCommonPassword(long[index] ?? ''), true, String(index));
  }
  for (const word of ['correct horse battery staple', '', 'zx9-qq', 'tr0ub4dor&3xyz']) {
    assert.equal(await isCommonPassword(word), false, word);
  }
});
