/**
 * Cuts a batch into its messages without changing a byte of them. The bytes of a message are kept as they
 * were sent, because reading and writing JSON again would alter numbers that JavaScript cannot hold.
 */

const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const space = 0x20;
const tab = 0x09;
const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf]);

function isSpace(byte: number | undefined): boolean {
  return byte === space || byte === lineFeed || byte === carriageReturn || byte === tab;
}

/** JSON may come with a byte order mark, which is no part of it. */
export function withoutByteOrderMark(bytes: Uint8Array): Uint8Array {
  return byteOrderMark.equals(bytes.subarray(0, 3)) ? bytes.subarray(3) : bytes;
}

/** The lines of NDJSON; empty ones are no messages. */
export function splitLines(bytes: Uint8Array): Uint8Array[] {
  const lines: Uint8Array[] = [];
  let start = 0;
  while (start < bytes.length) {
    const found = bytes.indexOf(lineFeed, start);
    const end = found < 0 ? bytes.length : found;
    const line = trim(bytes, start, end);
    if (line.length > 0) lines.push(line);
    start = end + 1;
  }
  return lines;
}

/**
 * The elements of a JSON array; undefined when the bytes are not one array. The elements are still unread:
 * exactly if each of them is JSON, the whole is.
 */
export function splitArray(bytes: Uint8Array): Uint8Array[] | undefined {
  const whole = trim(bytes, 0, bytes.length);
  if (whole[0] !== 0x5b || whole[whole.length - 1] !== 0x5d) return undefined;
  const elements: Uint8Array[] = [];
  let depth = 0;
  let start = 1;
  for (let index = 1; index < whole.length - 1; index += 1) {
    const byte = whole[index];
    if (byte === quote) {
      index = endOfString(whole, index);
    } else if (byte === 0x7b || byte === 0x5b) {
      depth += 1;
    } else if (byte === 0x7d || byte === 0x5d) {
      depth -= 1;
      if (depth < 0) return undefined;
    } else if (byte === comma && depth === 0) {
      elements.push(trim(whole, start, index));
      start = index + 1;
    }
  }
  const last = trim(whole, start, whole.length - 1);
  if (depth !== 0 || (last.length === 0 && elements.length > 0)) return undefined;
  if (last.length > 0) elements.push(last);
  return elements;
}

/** The place of the quote that ends the string which begins here; past the last place when there is none. */
function endOfString(bytes: Uint8Array, start: number): number {
  let index = start + 1;
  while (index < bytes.length && bytes[index] !== quote) index += bytes[index] === backslash ? 2 : 1;
  return index;
}

function trim(bytes: Uint8Array, start: number, end: number): Uint8Array {
  let from = start;
  let to = end;
  while (from < to && isSpace(bytes[from])) from += 1;
  while (to > from && isSpace(bytes[to - 1])) to -= 1;
  return bytes.subarray(from, to);
}
