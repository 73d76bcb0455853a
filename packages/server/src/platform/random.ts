import { randomBytes, randomInt } from 'node:crypto';

/** Where ids, codes and secrets come from, so that tests can make them predictable. */
export interface Random {
  bytes(count: number): Buffer;
  /** A uniformly distributed integer in [0, limit). */
  integer(limit: number): number;
}

export const systemRandom: Random = {
  bytes: (count) => randomBytes(count),
  integer: (limit) => randomInt(limit),
};

/** The digits of base62, in the order of their values. */
export const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** An unguessable token of base64url characters carrying the given number of bytes. */
export function randomToken(random: Random, bytes = 32): string {
  return random.bytes(bytes).toString('base64url');
}

/** A short unguessable id for rows and requests: 22 characters of base62, about 131 bits. */
export function randomId(random: Random): string {
  return randomBase62(random, 22);
}

/** Base62 characters without modulo bias: bytes past the last whole multiple of 62 are thrown away. */
export function randomBase62(random: Random, length: number): string {
  let text = '';
  while (text.length < length) {
    for (const byte of random.bytes(length * 2)) {
      if (byte < 248 && text.length < length) text += base62[byte % 62];
    }
  }
  return text;
}

/** A numeric code such as the six digits of a confirmation mail. */
export function randomDigits(random: Random, length: number): string {
  return String(random.integer(10 ** length)).padStart(length, '0');
}
