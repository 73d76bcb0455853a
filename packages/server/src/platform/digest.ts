import { createHmac, hash, timingSafeEqual } from 'node:crypto';

/** How secrets that must be recognised but never shown again are stored: SHA-256, for inputs of high entropy. */
export function digest(text: string): string {
  return hash('sha256', text, 'base64url');
}

/** A digest that only the holder of the key can make, for inputs that could be guessed, such as short codes. */
export function keyedDigest(key: string, ...parts: readonly string[]): string {
  const mac = createHmac('sha256', key);
  // Lengths go in as well, so that no two lists of parts give the same input.
  for (const part of parts) mac.update(`${Buffer.byteLength(part)}:`).update(part);
  return mac.digest('base64url');
}

/** Compares two digests in a time that does not depend on where they differ. */
export function sameDigest(left: string, right: string): boolean {
  const a = Buffer.from(left);
  const b = Buffer.from(right);
  return a.length === b.length && timingSafeEqual(a, b);
}
