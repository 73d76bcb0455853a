import { styleText } from 'node:util';
import { safeJson, safeText } from './safe-text.ts';
import { tableOf } from './table.ts';

export interface OutputOptions {
  readonly json: boolean;
  readonly quiet: boolean;
  /** Whether colours may be used where a terminal is. */
  readonly color: boolean;
}

const clearLine = '\r\u001b[2K';

type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan';

/** A part of a line that has a colour, where there are colours. */
export interface Styled {
  readonly style: Style;
  readonly text: string;
}

/** What a line is made of. Texts are made safe when they are printed, so colours cannot be part of one. */
export type Part = string | Styled;

export function styled(style: Style, text: string): Styled {
  return { style, text };
}

/** Where things are printed: data on stdout, everything for a person on stderr. */
export class Output {
  readonly json: boolean;
  readonly quiet: boolean;
  readonly #color: boolean;
  #isDrawn = false;

  constructor(options: OutputOptions) {
    this.json = options.json;
    this.quiet = options.quiet;
    this.#color = options.color;
  }

  /** Whether a person looks at what is on stderr. */
  get interactive(): boolean {
    return process.stderr.isTTY === true && !this.quiet;
  }

  /** A line of data. */
  line(...parts: readonly Part[]): void {
    this.#write(process.stdout, parts);
  }

  /** One value: as JSON, or as a person reads it. */
  value(value: unknown, asText: () => string | readonly Part[]): void {
    const text = this.json ? safeJson(value) : asText();
    this.line(...(typeof text === 'string' ? [text] : text));
  }

  /** Many values: each a line of JSON, or one table. */
  list<Entry>(
    entries: readonly Entry[],
    columns: Readonly<Record<string, (entry: Entry) => string | number | boolean | undefined>>,
  ): void {
    if (this.json) {
      for (const entry of entries) this.line(safeJson(entry));
      return;
    }
    if (entries.length === 0) {
      this.note('There is nothing to show.');
      return;
    }
    const rows = entries.map((entry) => Object.values(columns).map((read) => String(read(entry) ?? '')));
    // Names and keys are for copying, so nothing is cut off.
    for (const line of tableOf(Object.keys(columns), rows, Number.POSITIVE_INFINITY)) this.line(line);
  }

  /** What was done: a value for programs when they ask for JSON, and a sentence for people otherwise. */
  done(value: object, text: string): void {
    if (this.json) this.line(safeJson(value));
    else this.note(text);
  }

  /** Something for a person to know. */
  note(...parts: readonly Part[]): void {
    if (!this.quiet) this.#write(process.stderr, parts);
  }

  error(text: string): void {
    this.#write(process.stderr, [styled('red', 'error'), `: ${text}`]);
  }

  /** Draws a line in the place of the one that was drawn before, where a person looks at it. */
  draw(text: string): void {
    if (!this.interactive) return;
    this.#isDrawn = true;
    process.stderr.write(`${clearLine}${safeText(text)}`);
  }

  /** Takes away what was drawn. */
  erase(): void {
    if (this.#isDrawn) process.stderr.write(clearLine);
    this.#isDrawn = false;
  }

  #write(stream: NodeJS.WriteStream, parts: readonly Part[]): void {
    this.erase();
    const color = this.#color && stream.isTTY === true;
    const text = parts.map((part) => {
      if (typeof part === 'string') return safeText(part);
      const plain = safeText(part.text);
      return color ? styleText(part.style, plain, { validateStream: false }) : plain;
    });
    stream.write(`${text.join('')}\n`);
  }
}
