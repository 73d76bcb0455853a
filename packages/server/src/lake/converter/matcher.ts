import { momentIn } from './moment.ts';
import type { Field, Shape } from './shape.ts';
import {
  closeBrace,
  closeBracket,
  colon,
  comma,
  openBrace,
  openBracket,
  quote,
  skipAny,
  skipBoolean,
  skipDouble,
  skipEmpty,
  skipInteger,
  skipNull,
  skipPlainString,
  skipSpace,
  skipString,
} from './tokens.ts';

/** How far ahead a key that was left out is looked for. */
const hops = 4;

/**
 * Decides at the speed of reading whether a message fits the columns as they are, so that its text can go
 * to the SQL engine untouched. It never says yes wrongly; where it would have to think it says no, and the
 * typer looks closer. It works on bytes and on the guess that fields come in the order they came last time.
 */
export class Matcher {
  readonly #root: Shape;
  readonly #notes: Notes = { turn: 0, offsets: false };

  constructor(root: Shape) {
    this.#root = root;
  }

  /** Whether a time with a zone other than UTC was seen. */
  get offsets(): boolean {
    return this.#notes.offsets;
  }

  /**
   * Whether the text from `start` to `end` is an object with at least one field, and all of it fits. Line
   * breaks between its tokens become spaces. The byte at `end` is overwritten with a line break.
   */
  fits(bytes: Uint8Array, start: number, end: number): boolean {
    bytes[end] = 0;
    let at = -1;
    if (bytes[start] === openBrace && bytes[skipSpace(bytes, start + 1)] !== closeBrace) {
      at = skipStruct(bytes, start, this.#root, this.#notes);
      if (at >= 0) at = skipSpace(bytes, at);
    }
    bytes[end] = 0x0a;
    return at === end;
  }
}

interface Notes {
  /** Counts objects, to tell a field that comes twice in one from one that comes in two. */
  turn: number;
  offsets: boolean;
}

function skipStruct(bytes: Uint8Array, start: number, struct: Shape, notes: Notes): number {
  const turn = ++notes.turn;
  let previous: Field | undefined;
  let at = start + 1;
  if ((bytes[at] ?? 0) <= 0x20) at = skipSpace(bytes, at);
  if (bytes[at] === closeBrace) return at + 1;
  for (;;) {
    let field = previous === undefined ? struct.first : previous.next;
    if (field === undefined || !isKey(bytes, at, field.key)) {
      field = findField(bytes, at, struct, field);
      if (field === undefined) return -1;
      if (previous === undefined) struct.first = field;
      else previous.next = field;
    }
    if (field.turn === turn) return -1;
    field.turn = turn;
    previous = field;
    at += field.key.length;
    if (bytes[at] !== colon) {
      at = skipSpace(bytes, at);
      if (bytes[at] !== colon) return -1;
    }
    at++;
    if ((bytes[at] ?? 0) <= 0x20) at = skipSpace(bytes, at);
    at = skipValue(bytes, at, field.shape, notes);
    if (at < 0) return -1;
    if ((bytes[at] ?? 0) <= 0x20) at = skipSpace(bytes, at);
    const byte = bytes[at++];
    if (byte === closeBrace) return at;
    if (byte !== comma) return -1;
    if ((bytes[at] ?? 0) <= 0x20) at = skipSpace(bytes, at);
  }
}

function isKey(bytes: Uint8Array, at: number, key: Uint8Array): boolean {
  for (let index = 0; index < key.length; index++) {
    if (bytes[at + index] !== key[index]) return false;
  }
  return true;
}

function findField(
  bytes: Uint8Array,
  at: number,
  struct: Shape,
  guess: Field | undefined,
): Field | undefined {
  let candidate = guess?.next;
  for (let hop = 1; hop < hops && candidate !== undefined; hop++) {
    if (isKey(bytes, at, candidate.key)) return candidate;
    candidate = candidate.next;
  }
  if (bytes[at] !== quote) return undefined;
  const end = skipPlainString(bytes, at);
  if (end < 0) return undefined;
  return struct.fields.get(Buffer.from(bytes.buffer, bytes.byteOffset + at + 1, end - at - 2).toString());
}

function skipValue(bytes: Uint8Array, at: number, shape: Shape, notes: Notes): number {
  const byte = bytes[at];
  if (byte === 0x6e) return skipNull(bytes, at);
  switch (shape.kind) {
    case 'varchar':
      return byte === quote ? skipString(bytes, at) : -1;
    case 'bigint':
      return skipInteger(bytes, at, shape.large);
    case 'double':
      return skipDouble(bytes, at);
    case 'timestamp':
      return byte === quote ? skipMoment(bytes, at, true, notes) : -1;
    case 'boolean':
      return skipBoolean(bytes, at);
    case 'date':
      return byte === quote ? skipMoment(bytes, at, false, notes) : -1;
    case 'struct':
      return byte === openBrace ? skipStruct(bytes, at, shape, notes) : -1;
    case 'list':
      return byte === openBracket && shape.element !== undefined
        ? skipList(bytes, at, shape.element, notes)
        : -1;
    case 'json':
      return shape.empty === undefined ? skipAny(bytes, at) : skipEmpty(bytes, at, shape.empty);
    case 'unknown':
      return -1;
  }
}

function skipList(bytes: Uint8Array, start: number, element: Shape, notes: Notes): number {
  let at = skipSpace(bytes, start + 1);
  if (bytes[at] === closeBracket) return at + 1;
  for (;;) {
    at = skipValue(bytes, skipSpace(bytes, at), element, notes);
    if (at < 0) return -1;
    at = skipSpace(bytes, at);
    const byte = bytes[at++];
    if (byte === closeBracket) return at;
    if (byte !== comma) return -1;
  }
}

function skipMoment(bytes: Uint8Array, start: number, withTime: boolean, notes: Notes): number {
  const end = skipPlainString(bytes, start);
  if (end < 0) return -1;
  const moment = momentIn(bytes, start + 1, end - 1);
  if (moment === 'none' || (moment !== 'date' && !withTime)) return -1;
  if (moment === 'offset-timestamp') notes.offsets = true;
  return end;
}
