import { deepestJson } from './limits.ts';

/**
 * The tokens of JSON in bytes. Each function is given where a token begins and says where it ends, or -1
 * when it is not one, or one that deserves a closer look. None goes past a zero, which must therefore
 * stand after the text.
 */

export const quote = 0x22;
export const comma = 0x2c;
export const colon = 0x3a;
export const openBrace = 0x7b;
export const closeBrace = 0x7d;
export const openBracket = 0x5b;
export const closeBracket = 0x5d;
const backslash = 0x5c;

/** Rounding aside, well below the largest 64-bit integer. */
const surelyInteger = 9.2e18;

/** A string without half a surrogate pair. */
export function skipString(bytes: Uint8Array, start: number): number {
  let at = start + 1;
  for (;;) {
    const byte = bytes[at] ?? 0;
    if (byte === quote) return at + 1;
    if (byte < 0x20) return -1;
    if (byte === backslash) {
      const length = escapeLength(bytes, at);
      if (length === 0) return -1;
      at += length;
    } else {
      at++;
    }
  }
}

/** A string without escapes. */
export function skipPlainString(bytes: Uint8Array, start: number): number {
  let at = start + 1;
  for (;;) {
    const byte = bytes[at] ?? 0;
    if (byte === quote) return at + 1;
    if (byte < 0x20 || byte === backslash) return -1;
    at++;
  }
}

/** An integer that a double holds for sure, or, if `large`, that 64 bits do. */
export function skipInteger(bytes: Uint8Array, start: number, large: boolean): number {
  const at = skipDigits(bytes, start, large ? surelyInteger : Number.MAX_SAFE_INTEGER);
  const byte = at < 0 ? 0 : bytes[at];
  return byte === 0x2e || byte === 0x65 || byte === 0x45 ? -1 : at;
}

/** A number without an exponent whose integer part a double holds for sure. */
export function skipDouble(bytes: Uint8Array, start: number): number {
  let at = skipDigits(bytes, start, Number.MAX_SAFE_INTEGER);
  if (at < 0) return -1;
  let byte = bytes[at] ?? 0;
  if (byte === 0x2e) {
    const fraction = at + 1;
    do byte = bytes[++at] ?? 0;
    while (isDigit(byte));
    if (at === fraction || at - fraction > 200) return -1;
  }
  return byte === 0x65 || byte === 0x45 ? -1 : at;
}

function skipDigits(bytes: Uint8Array, start: number, largest: number): number {
  let at = start;
  if (bytes[at] === 0x2d) at++;
  const first = at;
  let number = 0;
  for (let byte = bytes[at] ?? 0; isDigit(byte); byte = bytes[++at] ?? 0)
    number = number * 10 + (byte - 0x30);
  if (at === first || (bytes[first] === 0x30 && at > first + 1)) return -1;
  return number <= largest ? at : -1;
}

export function skipBoolean(bytes: Uint8Array, at: number): number {
  const byte = bytes[at];
  if (byte === 0x74) return isWord(bytes, at + 1, 0x72, 0x75, 0x65) ? at + 4 : -1;
  if (byte !== 0x66 || bytes[at + 1] !== 0x61) return -1;
  return isWord(bytes, at + 2, 0x6c, 0x73, 0x65) ? at + 5 : -1;
}

export function skipNull(bytes: Uint8Array, at: number): number {
  return isWord(bytes, at + 1, 0x75, 0x6c, 0x6c) ? at + 4 : -1;
}

function isWord(bytes: Uint8Array, at: number, first: number, second: number, third: number): boolean {
  return bytes[at] === first && bytes[at + 1] === second && bytes[at + 2] === third;
}

/** Any JSON that is not too deep. Trusts its grammar, except for brackets and strings. */
export function skipAny(bytes: Uint8Array, start: number): number {
  let depth = 0;
  let at = start;
  do {
    at = skipSpace(bytes, at);
    const byte = bytes[at] ?? 0;
    if (byte === quote) {
      at = skipString(bytes, at);
      if (at < 0) return -1;
    } else if (byte === openBrace || byte === openBracket) {
      if (++depth > deepestJson) return -1;
      at++;
    } else if (depth > 0 && (byte === closeBrace || byte === closeBracket)) {
      depth--;
      at++;
    } else if (depth > 0 && (byte === comma || byte === colon)) {
      at++;
    } else {
      const word = at;
      while (isWordByte(bytes[at] ?? 0)) at++;
      if (at === word) return -1;
    }
  } while (depth > 0);
  return at;
}

/** `{}` or `[]`. */
export function skipEmpty(bytes: Uint8Array, start: number, container: 'object' | 'array'): number {
  const [open, close] = container === 'object' ? [openBrace, closeBrace] : [openBracket, closeBracket];
  if (bytes[start] !== open) return -1;
  const at = skipSpace(bytes, start + 1);
  return bytes[at] === close ? at + 1 : -1;
}

/** White space, all of which becomes spaces on the way: a message must be one line. */
export function skipSpace(bytes: Uint8Array, start: number): number {
  let at = start;
  for (;;) {
    const byte = bytes[at] ?? 0;
    if (byte > 0x20 || (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09)) return at;
    bytes[at] = 0x20;
    at++;
  }
}

function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39;
}

/** Letters, digits and signs: what numbers, true, false and null are made of. */
function isWordByte(byte: number): boolean {
  return (
    isDigit(byte) ||
    (byte >= 0x61 && byte <= 0x7a) ||
    byte === 0x2d ||
    byte === 0x2b ||
    byte === 0x2e ||
    byte === 0x45
  );
}

/** The length of an escape, or of two that are one character; 0 when it is none, or half of one. */
function escapeLength(bytes: Uint8Array, at: number): number {
  switch (bytes[at + 1]) {
    case 0x22:
    case 0x5c:
    case 0x2f:
    case 0x62:
    case 0x66:
    case 0x6e:
    case 0x72:
    case 0x74:
      return 2;
    case 0x75:
      break;
    default:
      return 0;
  }
  const unit = codeUnit(bytes, at);
  if (unit < 0 || (unit >= 0xdc00 && unit <= 0xdfff)) return 0;
  if (unit < 0xd800 || unit > 0xdfff) return 6;
  const low = bytes[at + 6] === backslash && bytes[at + 7] === 0x75 ? codeUnit(bytes, at + 6) : -1;
  return low >= 0xdc00 && low <= 0xdfff ? 12 : 0;
}

function codeUnit(bytes: Uint8Array, at: number): number {
  let unit = 0;
  for (let index = at + 2; index < at + 6; index++) {
    const byte = bytes[index] ?? 0;
    const letter = byte | 0x20;
    if (isDigit(byte)) unit = unit * 16 + byte - 0x30;
    else if (letter >= 0x61 && letter <= 0x66) unit = unit * 16 + letter - 0x57;
    else return -1;
  }
  return unit;
}
