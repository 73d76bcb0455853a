import { crc32 } from 'node:zlib';
import { base62, type Random, randomBase62 } from '../platform/random.ts';

/**
 * An API key is `mr_`, 30 random base62 characters and 6 of checksum. The prefix lets scanners of leaked
 * secrets find it; the checksum lets us refuse a mistyped or made-up one without asking the database.
 */
const prefix = 'mr_';
const randomLength = 30;
const checksumLength = 6;
const shape = /^mr_[0-9A-Za-z]{36}$/;

export function makeApiKey(random: Random): string {
  const body = randomBase62(random, randomLength);
  return `${prefix}${body}${checksum(body)}`;
}

/** Whether the text can be an API key at all. */
export function isApiKey(text: string): boolean {
  if (!shape.test(text)) return false;
  const body = text.slice(prefix.length, prefix.length + randomLength);
  return checksum(body) === text.slice(prefix.length + randomLength);
}

function checksum(body: string): string {
  let rest = crc32(body);
  let text = '';
  for (let place = 0; place < checksumLength; place += 1) {
    text = base62.charAt(rest % 62) + text;
    rest = Math.floor(rest / 62);
  }
  return text;
}
