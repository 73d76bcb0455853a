import { type Column, columnLimit, countColumns, isSystemName } from '../columns.ts';
import { learn } from './learn.ts';
import { deepestJson, nestedFieldLimit, parsedLevels, unknownLimit } from './limits.ts';
import { Matcher } from './matcher.ts';
import { momentInText } from './moment.ts';
import { type Member, type Parsed, type ParsedArray, type ParsedObject, parse } from './parse.ts';
import { nameText, rescueText } from './rescue.ts';
import {
  admits,
  become,
  columnsOf,
  countShapes,
  newShape,
  putField,
  putUnknown,
  rootOf,
  type Shape,
} from './shape.ts';

export interface TyperOptions {
  readonly columns: readonly Column[];
  readonly nextColumnId: number;
  /** Whether new fields become columns and columns may widen; not so where a schema was uploaded. */
  readonly open: boolean;
  readonly columnLimit?: number;
}

/** A message that did not fit as it was. */
export interface Typed {
  /** The fields that stand in columns, as the members of a JSON object without its braces; may be empty. */
  readonly members: string;
  /** JSON of what does not stand in a column as it was sent. */
  readonly rescued: string | undefined;
}

/**
 * Types the messages of one file: decides for every field of every message whether it stands in its column
 * as it was sent, and makes columns of what is new. Messages that fit as they are cost one pass over their
 * bytes; the others are taken apart.
 */
export class Typer {
  readonly #root: Shape;
  readonly #matcher: Matcher;
  readonly #open: boolean;
  readonly #nextColumnId: number;
  #room: number;
  #unknowns = 0;
  #offsets = false;
  #text = '';
  /** Whether something of the field at hand does not stand in its column as it was sent. */
  #misfit = false;
  /** Whether the text of the object at hand cannot be used as it is. */
  #altered = false;

  constructor(options: TyperOptions) {
    this.#root = rootOf(options.columns);
    this.#matcher = new Matcher(this.#root);
    this.#open = options.open;
    this.#nextColumnId = options.nextColumnId;
    this.#room = (options.columnLimit ?? columnLimit) - countColumns(options.columns);
  }

  /**
   * Whether the message between two positions can stand in the file as it is. Line breaks between its
   * tokens become spaces. The byte at `end` must be a control character.
   */
  fits(bytes: Uint8Array, start: number, end: number): boolean {
    return this.#matcher.fits(bytes, start, end);
  }

  /** Takes a message apart. */
  type(body: Uint8Array): Typed {
    const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString();
    const parsed = parse(text, parsedLevels);
    this.#text = text;
    if (parsed === undefined) return { members: '', rescued: JSON.stringify(text) };
    if (parsed.kind !== 'object') return { members: '', rescued: rescueText(text, parsed) };
    const members: string[] = [];
    const rescued: string[] = [];
    for (const member of lastOfEach(parsed.members)) {
      this.#misfit = false;
      const kept = this.#member(this.#root, member, 1);
      if (kept !== undefined) members.push(kept);
      if (this.#misfit) rescued.push(`${nameText(member.name)}:${rescueText(text, member.value)}`);
    }
    return {
      members: members.join(','),
      rescued: rescued.length === 0 ? undefined : `{${rescued.join(',')}}`,
    };
  }

  /** The columns by now. The same ids come out however often it is asked, while nothing changes. */
  columns(): { readonly columns: Column[]; readonly nextColumnId: number } {
    let nextColumnId = this.#nextColumnId;
    const columns = columnsOf(this.#root, () => nextColumnId++);
    return { columns, nextColumnId };
  }

  /** Whether times with a zone other than UTC stand in the file. */
  get offsets(): boolean {
    return this.#offsets || this.#matcher.offsets;
  }

  /** What of a member stands in the line; undefined when nothing of it does. */
  #member(struct: Shape, member: Member, level: number): string | undefined {
    const shape = this.#shapeFor(struct, member, level);
    if (shape === undefined) {
      if (member.value.kind !== 'null') this.#misfit = true;
      return undefined;
    }
    const kept = this.#fit(shape, member.value, level);
    return kept === undefined ? undefined : `${JSON.stringify(member.name)}:${kept}`;
  }

  #shapeFor(struct: Shape, { name, value }: Member, level: number): Shape | undefined {
    const field = struct.fields.get(name);
    if (field !== undefined && field.shape.kind !== 'unknown') return field.shape;
    if (value.kind === 'null') {
      if (field === undefined) this.#remember(struct, name);
      return undefined;
    }
    if (!this.#open || !admits(struct, name, struct === this.#root)) return undefined;
    const shape = learn(value, this.#text, level);
    if (struct !== this.#root && struct.folds.size >= nestedFieldLimit) return undefined;
    const count = countShapes(shape);
    if (count > this.#room) return undefined;
    this.#room -= count;
    putField(struct, name, shape);
    return shape;
  }

  #remember(struct: Shape, name: string): void {
    if (!name.isWellFormed() || (struct === this.#root && isSystemName(name))) return;
    if (this.#unknowns++ < unknownLimit) putUnknown(struct, name);
  }

  /** The text of a value in its column; undefined when the column is null. */
  #fit(shape: Shape, value: Parsed, level: number): string | undefined {
    if (value.kind === 'null') return undefined;
    const fits = this.#isFit(shape, value, level);
    if (fits === false) {
      this.#misfit = true;
      return undefined;
    }
    if (fits !== true) return fits;
    const text = this.#text.slice(value.start, value.end);
    return value.kind === 'object' || value.kind === 'array' || value.kind === 'opaque'
      ? text.replaceAll(/[\n\r]/g, ' ')
      : text;
  }

  /** Whether a value is one of its column as it is, or the text of what of it is. */
  #isFit(shape: Shape, value: Parsed, level: number): boolean | string {
    switch (shape.kind) {
      case 'boolean':
        return value.kind === 'boolean';
      case 'bigint':
        return this.#isInteger(shape, value);
      case 'double':
        return this.#isDouble(value);
      case 'varchar':
        return value.kind === 'string' && !value.broken;
      case 'date':
      case 'timestamp':
        return this.#isMoment(shape, value);
      case 'struct':
        return value.kind === 'object' && this.#struct(shape, value, level);
      case 'list':
        return value.kind === 'array' && this.#list(shape, value, level);
      case 'json':
        return this.#isJson(shape, value, level);
      case 'unknown':
        return false;
    }
  }

  #isInteger(shape: Shape, value: Parsed): boolean {
    if (value.kind === 'integer') {
      const source = this.#text.slice(value.start, value.end);
      if (Number.isSafeInteger(Number(source))) return true;
      if (source.length <= 20 && BigInt.asIntN(64, BigInt(source)) === BigInt(source)) {
        if (!isExact(source)) shape.large = true;
        return true;
      }
    } else if (value.kind !== 'real') {
      return false;
    }
    if (!this.#open || shape.large || !this.#isDouble(value)) return false;
    shape.kind = 'double';
    return true;
  }

  #isDouble(value: Parsed): boolean {
    if (value.kind !== 'integer' && value.kind !== 'real') return false;
    const source = this.#text.slice(value.start, value.end);
    const number = Number(source);
    if (!Number.isFinite(number)) return false;
    // The column holds what comes nearest, and what was sent is kept beside it.
    if (value.kind === 'integer' ? !isExact(source) : number === 0 && /^[^eE]*[1-9]/.test(source)) {
      this.#misfit = true;
    }
    return true;
  }

  #isMoment(shape: Shape, value: Parsed): boolean {
    if (value.kind !== 'string' || value.broken) return false;
    const moment = momentInText(this.#text, value.start + 1, value.end - 1);
    if (moment === 'offset-timestamp') this.#offsets = true;
    if (moment === 'date' || (moment !== 'none' && shape.kind === 'timestamp')) return true;
    if (!this.#open) return false;
    if (moment !== 'none') shape.kind = 'timestamp';
    else if (!shape.committed) shape.kind = 'varchar';
    else return false;
    return true;
  }

  #isJson(shape: Shape, value: Parsed, level: number): boolean | string {
    if (value.broken || value.depth > deepestJson) return false;
    if (shape.empty === undefined) return true;
    const learnt = learn(value, this.#text, level);
    if (learnt.kind === 'json' && learnt.empty === shape.empty) return true;
    const wanted = shape.empty === 'object' ? 'struct' : 'list';
    const count = countShapes(learnt) - 1;
    if (!this.#open || learnt.kind !== wanted || count > this.#room) {
      shape.empty = undefined;
      return true;
    }
    this.#room -= count;
    become(shape, learnt);
    return this.#isFit(shape, value, level);
  }

  #struct(shape: Shape, value: ParsedObject, level: number): boolean | string {
    const kept: string[] = [];
    const before = this.#misfit;
    const alteredBefore = this.#altered;
    this.#misfit = false;
    this.#altered = false;
    const members = lastOfEach(value.members);
    for (const member of members) {
      const text = this.#member(shape, member, level + 1);
      if (text !== undefined) kept.push(text);
    }
    const altered = this.#altered || this.#misfit || value.broken || members.length < value.members.length;
    this.#altered = altered || alteredBefore;
    if (this.#misfit && !shape.committed && shape.folds.size >= nestedFieldLimit) {
      // An object with ever new fields is a map, and a map is better read as JSON.
      this.#room += countShapes(shape) - 1;
      become(shape, newShape('json'));
      this.#misfit = before;
      return this.#isJson(shape, value, level);
    }
    this.#misfit ||= before;
    return altered ? `{${kept.join(',')}}` : true;
  }

  #list(shape: Shape, value: ParsedArray, level: number): boolean | string {
    const element = shape.element;
    if (element === undefined) return false;
    const texts = value.elements.map((item) => this.#fit(element, item, level + 1) ?? 'null');
    return `[${texts.join(',')}]`;
  }
}

/** Of fields that come twice the last one counts, as everywhere else JSON is read. */
function lastOfEach(members: readonly Member[]): readonly Member[] {
  const names = new Set<string>();
  for (const { name } of members) names.add(name);
  if (names.size === members.length) return members;
  return [...new Map(members.map((member) => [member.name, member])).values()];
}

function isExact(integer: string): boolean {
  const number = Number(integer);
  return Number.isSafeInteger(number) || (integer.length < 400 && BigInt(number) === BigInt(integer));
}
