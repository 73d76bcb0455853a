/**
 * Reads dates and times of ISO 8601 out of bytes, and only such as the SQL engine reads to the same moment:
 * four-digit years from 0001, a real day of the calendar, at most six digits of a second, no leap second,
 * seconds where there is a zone.
 */
export type Moment = 'none' | 'date' | 'timestamp' | 'offset-timestamp';

const zero = 0x30;

/** What the bytes between two positions are. `offset-timestamp` has a zone other than Z. */
export function momentIn(bytes: Uint8Array, start: number, end: number): Moment {
  const length = end - start;
  if (length < 10 || length > 32) return 'none';
  if (bytes[start + 4] !== 0x2d || bytes[start + 7] !== 0x2d) return 'none';
  const year = twoDigits(bytes, start) * 100 + twoDigits(bytes, start + 2);
  const month = twoDigits(bytes, start + 5);
  const day = twoDigits(bytes, start + 8);
  if (!(year >= 1 && month >= 1 && month <= 12 && day >= 1 && day <= daysIn(year, month))) return 'none';
  if (length === 10) return 'date';
  const separator = bytes[start + 10];
  if (separator !== 0x54 && separator !== 0x20) return 'none';
  return timeIn(bytes, start + 11, end);
}

/** The same of text, most of which is told apart by a look at two characters. */
export function momentInText(text: string, start: number, end: number): Moment {
  if (
    end - start < 10 ||
    end - start > 32 ||
    text.charCodeAt(start + 4) !== 0x2d ||
    text.charCodeAt(start + 7) !== 0x2d
  ) {
    return 'none';
  }
  const bytes = Buffer.from(text.slice(start, end));
  return momentIn(bytes, 0, bytes.length);
}

function timeIn(bytes: Uint8Array, start: number, end: number): Moment {
  if (end - start < 5 || bytes[start + 2] !== 0x3a) return 'none';
  if (!(twoDigits(bytes, start) <= 23 && twoDigits(bytes, start + 3) <= 59)) return 'none';
  let at = start + 5;
  if (at === end) return 'timestamp';
  if (bytes[at] !== 0x3a || end - at < 3 || !(twoDigits(bytes, at + 1) <= 59)) return 'none';
  at += 3;
  if (at < end && bytes[at] === 0x2e) {
    const fraction = at + 1;
    at = fraction;
    while (at < end && isDigit(bytes[at])) at++;
    if (at === fraction || at - fraction > 6) return 'none';
  }
  if (at === end) return 'timestamp';
  if (bytes[at] === 0x5a) return at + 1 === end ? 'timestamp' : 'none';
  return isOffset(bytes, at, end) ? 'offset-timestamp' : 'none';
}

/** +HH:MM, +HHMM or +HH. */
function isOffset(bytes: Uint8Array, start: number, end: number): boolean {
  if (bytes[start] !== 0x2b && bytes[start] !== 0x2d) return false;
  if (end - start < 3 || !(twoDigits(bytes, start + 1) <= 15)) return false;
  let at = start + 3;
  if (at === end) return true;
  if (bytes[at] === 0x3a) at++;
  return end - at === 2 && twoDigits(bytes, at) <= 59;
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= zero && byte <= 0x39;
}

/** NaN when they are not two digits, so that every comparison with it fails. */
function twoDigits(bytes: Uint8Array, at: number): number {
  const tens = (bytes[at] ?? 0) - zero;
  const ones = (bytes[at + 1] ?? 0) - zero;
  if (tens < 0 || tens > 9 || ones < 0 || ones > 9) return Number.NaN;
  return tens * 10 + ones;
}

function daysIn(year: number, month: number): number {
  if (month === 2) return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0 ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}
