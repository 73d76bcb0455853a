/**
 * Reads JSON into a tree that remembers where in the text everything stands, so that what is kept and what
 * is rescued are pieces of the message as it was written: no digit of a number is lost on the way.
 */

export type Parsed = Leaf | ParsedObject | ParsedArray;

interface Place {
  readonly start: number;
  readonly end: number;
  /** Half of a surrogate pair is escaped somewhere in it: no text in any encoding can hold that. */
  readonly broken: boolean;
  /** Levels of objects and arrays, this one included. */
  readonly depth: number;
}

/** `opaque` is an object or array further down than anyone looks. */
export interface Leaf extends Place {
  readonly kind: 'null' | 'boolean' | 'integer' | 'real' | 'string' | 'opaque';
}

export interface ParsedObject extends Place {
  readonly kind: 'object';
  readonly members: readonly Member[];
}

export interface ParsedArray extends Place {
  readonly kind: 'array';
  readonly elements: readonly Parsed[];
}

export interface Member {
  readonly name: string;
  /** Where it stands in the text, from the quote of its name to the end of its value. */
  readonly start: number;
  readonly value: Parsed;
  readonly broken: boolean;
}

class NotJson extends Error {}

/** The tree of a text, with objects and arrays as trees down to `levels`; undefined when it is no JSON. */
export function parse(text: string, levels: number): Parsed | undefined {
  const reader = new Reader(text);
  try {
    const parsed = reader.value(levels);
    return reader.atEnd() ? parsed : undefined;
  } catch (error) {
    if (error instanceof NotJson || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  atEnd(): boolean {
    this.#space();
    return this.#at === this.#text.length;
  }

  value(levels: number): Parsed {
    this.#space();
    switch (this.#text[this.#at]) {
      case '{':
        return levels > 0 ? this.#object(levels) : this.#opaque();
      case '[':
        return levels > 0 ? this.#array(levels) : this.#opaque();
      default:
        return this.#scalar();
    }
  }

  #scalar(): Leaf {
    const start = this.#at;
    switch (this.#text[start]) {
      case '"': {
        const broken = this.#string();
        return { kind: 'string', start, end: this.#at, broken, depth: 0 };
      }
      case 't':
        return this.#word('true', 'boolean');
      case 'f':
        return this.#word('false', 'boolean');
      case 'n':
        return this.#word('null', 'null');
      default:
        return this.#number();
    }
  }

  #number(): Leaf {
    const text = this.#text;
    const start = this.#at;
    let at = text.charCodeAt(start) === 0x2d ? start + 1 : start;
    const first = at;
    at = this.#digits(first);
    if (text.charCodeAt(first) === 0x30 && at > first + 1) throw new NotJson();
    let kind: 'integer' | 'real' = 'integer';
    if (text.charCodeAt(at) === 0x2e) {
      kind = 'real';
      at = this.#digits(at + 1);
    }
    if ((text.charCodeAt(at) | 0x20) === 0x65) {
      kind = 'real';
      const sign = text.charCodeAt(at + 1);
      at = this.#digits(sign === 0x2b || sign === 0x2d ? at + 2 : at + 1);
    }
    this.#at = at;
    return { kind, start, end: at, broken: false, depth: 0 };
  }

  /** Where the digits end that begin here; there must be one. */
  #digits(start: number): number {
    let at = start;
    for (let code = this.#text.charCodeAt(at); code >= 0x30 && code <= 0x39; code = this.#text.charCodeAt(at))
      at++;
    if (at === start) throw new NotJson();
    return at;
  }

  #word(word: string, kind: 'boolean' | 'null'): Leaf {
    const start = this.#at;
    if (!this.#text.startsWith(word, start)) throw new NotJson();
    this.#at += word.length;
    return { kind, start, end: this.#at, broken: false, depth: 0 };
  }

  #object(levels: number): ParsedObject {
    const start = this.#at++;
    const members: Member[] = [];
    let broken = false;
    let depth = 0;
    if (!this.#closes('}')) {
      do {
        const member = this.#member(levels);
        members.push(member);
        broken ||= member.broken;
        depth = Math.max(depth, member.value.depth);
      } while (this.#goesOn('}'));
    }
    return { kind: 'object', start, end: this.#at, broken, depth: depth + 1, members };
  }

  #member(levels: number): Member {
    this.#space();
    const start = this.#at;
    const name = this.#name();
    this.#space();
    if (this.#text[this.#at++] !== ':') throw new NotJson();
    const value = this.value(levels - 1);
    return { name, start, value, broken: value.broken || !name.isWellFormed() };
  }

  #name(): string {
    const start = this.#at;
    if (!this.#skipString()) return this.#text.slice(start + 1, this.#at - 1);
    const name: unknown = JSON.parse(this.#text.slice(start, this.#at));
    if (typeof name !== 'string') throw new NotJson();
    return name;
  }

  #array(levels: number): ParsedArray {
    const start = this.#at++;
    const elements: Parsed[] = [];
    let broken = false;
    let depth = 0;
    if (!this.#closes(']')) {
      do {
        const element = this.value(levels - 1);
        elements.push(element);
        broken ||= element.broken;
        depth = Math.max(depth, element.depth);
      } while (this.#goesOn(']'));
    }
    return { kind: 'array', start, end: this.#at, broken, depth: depth + 1, elements };
  }

  /** Goes over an object or array without calling itself, because a message may be nested without end. */
  #opaque(): Leaf {
    const start = this.#at;
    let broken = false;
    let depth = 0;
    let deepest = 0;
    do {
      this.#space();
      const character = this.#text[this.#at];
      if (character === '{' || character === '[') {
        deepest = Math.max(deepest, ++depth);
        this.#at++;
      } else if (character === '}' || character === ']') {
        depth--;
        this.#at++;
      } else if (character === ',' || character === ':') {
        this.#at++;
      } else {
        broken = this.#scalar().broken || broken;
      }
    } while (depth > 0);
    return { kind: 'opaque', start, end: this.#at, broken, depth: deepest };
  }

  /** Goes over a string and says whether it is broken. */
  #string(): boolean {
    const start = this.#at;
    const escaped = this.#skipString();
    if (!escaped) return false;
    const text: unknown = JSON.parse(this.#text.slice(start, this.#at));
    return typeof text === 'string' && !text.isWellFormed();
  }

  /** Goes over a string and says whether there are escapes in it; whether they are right is not looked at. */
  #skipString(): boolean {
    const text = this.#text;
    if (text.charCodeAt(this.#at) !== 0x22) throw new NotJson();
    let escaped = false;
    let at = this.#at + 1;
    for (;;) {
      const code = text.charCodeAt(at);
      if (code === 0x22) break;
      // Past the end it is NaN, which is not at least a space either.
      if (!(code >= 0x20)) throw new NotJson();
      if (code === 0x5c) {
        escaped = true;
        at++;
      }
      at++;
    }
    this.#at = at + 1;
    return escaped;
  }

  #closes(bracket: '}' | ']'): boolean {
    this.#space();
    if (this.#text[this.#at] !== bracket) return false;
    this.#at++;
    return true;
  }

  #goesOn(bracket: '}' | ']'): boolean {
    this.#space();
    const character = this.#text[this.#at++];
    if (character !== bracket && character !== ',') throw new NotJson();
    return character === ',';
  }

  #space(): void {
    for (;;) {
      const code = this.#text.charCodeAt(this.#at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
      this.#at++;
    }
  }
}
