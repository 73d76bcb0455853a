/**
 * Writes the list of common passwords that the server refuses, as sorted digests: small enough to keep in
 * memory, and quick to search. Run it again when the package that the words come from is updated; a test
 * compares the file with the package.
 */
import { writeFile } from 'node:fs/promises';
import { dictionary } from '@zxcvbn-ts/language-common';
import { commonPasswordFile, packCommonPasswords } from '../packages/server/src/identity/common-passwords.ts';

await writeFile(commonPasswordFile, packCommonPasswords(dictionary['passwords-common']));
