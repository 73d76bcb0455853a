import { styleText } from 'node:util';
import { tableOf } from './table.ts';

export interface OutputOptions {
  readonly json: boolean;
  readonly quiet: boolean;
  readonly color: boolean;
}

type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan';

/** Where things are printed: data on stdout, everything for a person on stderr. */
export class Output {
  readonly json: boolean;
  readonly quiet: boolean;
  readonly #color: boolean;

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
  line(text: string): void {
    process.stdout.write(`${text}\n`);
  }

  /** One value: as JSON, or as a person reads it. */
  value(value: unknown, asText: () => string): void {
    this.line(this.json ? JSON.stringify(value) : asText());
  }

  /** Many values: each a line of JSON, or one table. */
  list<Entry>(
    entries: readonly Entry[],
    columns: Readonly<Record<string, (entry: Entry) => string | number | boolean | undefined>>,
  ): void {
    if (this.json) {
      for (const entry of entries) this.line(JSON.stringify(entry));
      return;
    }
    if (entries.length === 0) {
      this.note('There is nothing to show.');
      return;
    }
    const rows = entries.map((entry) => Object.values(columns).map((read) => String(read(entry) ?? '')));
    for (const line of tableOf(Object.keys(columns), rows)) this.line(line);
  }

  /** Something for a person to know. */
  note(text: string): void {
    if (!this.quiet) process.stderr.write(`${text}\n`);
  }

  error(text: string): void {
    process.stderr.write(`${this.styled('red', 'error')}: ${text}\n`);
  }

  styled(style: Style, text: string): string {
    return this.#color ? styleText(style, text, { validateStream: false }) : text;
  }
}
