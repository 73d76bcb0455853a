/**
 * The single guard of object keys. Whatever passes here is safe to join to a directory or to send to S3;
 * whatever does not is refused before any disk or network is touched.
 *
 * A key is one or more segments joined by `/`. A segment is made of ASCII letters, digits and `=`, `.`,
 * `-`, `_` and does not begin with `.`: that leaves no room for `.`, `..`, hidden files, backslashes,
 * percent signs, control characters or names that look alike after Unicode normalization. Because keys
 * are ASCII, comparing them as JavaScript strings is comparing their UTF-8 bytes.
 */

/** The longest key S3 takes. */
export const maximumKeyBytes = 1024;

/** Under the 255 bytes that a file name may have. */
export const maximumSegmentBytes = 250;

declare const parsed: unique symbol;

/** A string that `parseKey` has let through. */
export type ObjectKey = string & { readonly [parsed]: 'key' };

export type KeyParse = { ok: true; key: ObjectKey } | { ok: false; reason: string };

/** A key that did not pass reached a store: a fault of the caller, who parses what strangers send. */
export class InvalidKeyError extends Error {
  override name = 'InvalidKeyError';
}

const segmentPattern = /^[A-Za-z0-9=_-][A-Za-z0-9=._-]*$/;

/** Says whether a text is a key. The reason never repeats the text, which may come from a stranger. */
export function parseKey(text: string): KeyParse {
  if (isKey(text)) return { ok: true, key: text };
  return { ok: false, reason: keyFlaw(text) ?? 'The key is not valid.' };
}

/** The key, or an `InvalidKeyError` for a text that is none. */
export function requireKey(text: string): ObjectKey {
  if (isKey(text)) return text;
  throw new InvalidKeyError(keyFlaw(text));
}

/**
 * Checks the beginning of keys, as given to a listing: empty, whole segments with a `/` at the end, or
 * cut anywhere inside a last segment.
 */
export function requirePrefix(text: string): string {
  if (text === '') return text;
  const whole = text.endsWith('/') ? text.slice(0, -1) : text;
  const flaw = keyFlaw(whole);
  if (flaw !== undefined) throw new InvalidKeyError(flaw);
  return text;
}

/** The name of the object inside its directory, such as `part-1.parquet`. */
export function lastSegment(key: ObjectKey): string {
  return key.slice(key.lastIndexOf('/') + 1);
}

/** Whether a single name may stand between two slashes of a key. */
export function isSegment(name: string): boolean {
  return name.length <= maximumSegmentBytes && segmentPattern.test(name);
}

function isKey(text: string): text is ObjectKey {
  return keyFlaw(text) === undefined;
}

function keyFlaw(text: string): string | undefined {
  if (text === '') return 'The key is empty.';
  // Every character that passes below is one byte long, so a longer string is a longer key as well.
  if (text.length > maximumKeyBytes) return `The key is longer than ${maximumKeyBytes} bytes.`;
  for (const segment of text.split('/')) {
    if (segment === '') return 'The key has an empty segment.';
    if (segment.length > maximumSegmentBytes) {
      return `The key has a segment longer than ${maximumSegmentBytes} bytes.`;
    }
    if (!segmentPattern.test(segment)) {
      return 'The key has a segment that begins with "." or has characters other than letters, digits and "=", ".", "-", "_".';
    }
  }
  return undefined;
}
