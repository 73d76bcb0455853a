import { hash } from 'node:crypto';
import { readFile } from 'node:fs/promises';

/**
 * Passwords that attackers try first, kept as the sorted first bytes of their digests: a few hundred
 * kilobytes instead of tens of thousands of strings. That a good password is taken for a common one has a
 * chance of one in thousands of millions.
 */
export const commonPasswordFile = new URL('./common-passwords.bin', import.meta.url);

const width = 6;
/** Shorter words cannot be part of an acceptable password. */
const shortest = 6;

export function packCommonPasswords(words: readonly string[]): Buffer {
  const prints = new Set(words.filter((word) => word.length >= shortest).map((word) => fingerprint(word)));
  return Buffer.concat([...prints].sort().map((print) => Buffer.from(print, 'hex')));
}

let packed: Promise<Buffer> | undefined;

/** Whether a password, in lower case, is among the common ones. */
export async function isCommonPassword(password: string): Promise<boolean> {
  packed ??= readFile(commonPasswordFile);
  const table = await packed;
  const wanted = Buffer.from(fingerprint(password), 'hex');
  let low = 0;
  let high = table.length / width;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const order = table.compare(wanted, 0, width, middle * width, (middle + 1) * width);
    if (order === 0) return true;
    if (order < 0) low = middle + 1;
    else high = middle;
  }
  return false;
}

function fingerprint(word: string): string {
  return hash('sha256', word, 'hex').slice(0, 2 * width);
}
