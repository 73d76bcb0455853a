import { CommandError } from './command.ts';

export interface CsvOptions {
  readonly delimiter: string;
  /** Whether every field stays a text. */
  readonly asText: boolean;
}

const mostRowCharacters = 16 * 1024 * 1024;
/** Digits that a number holds for certain. */
const safeDigits = 15;

/**
 * Rows under a first row of names, as lines of JSON. Numbers, true and false become values of JSON; what is
 * empty is left out.
 */
export async function* csvLines(
  texts: AsyncIterable<string>,
  { delimiter, asText }: CsvOptions,
): AsyncGenerator<string, void> {
  let names: readonly string[] | undefined;
  let number = 0;
  for await (const row of csvRows(texts, delimiter)) {
    number += 1;
    if (names === undefined) {
      names = namesOf(row);
      continue;
    }
    if (row.length === 1 && row[0] === '') continue;
    if (row.length > names.length)
      throw new CommandError(`Row ${number} has ${row.length} fields, and there are ${names.length} names.`);
    const fields = names.flatMap((name, index) => {
      const text = row[index] ?? '';
      return text === '' ? [] : [[name, asText ? text : jsonValueOf(text)]];
    });
    yield JSON.stringify(Object.fromEntries(fields));
  }
}

function namesOf(row: readonly string[]): readonly string[] {
  const names = row.map((name) => name.replace(/^\ufeff/, '').trim());
  const empty = names.indexOf('');
  if (empty >= 0)
    throw new CommandError(`Field ${empty + 1} of the first row, which has the names, is empty.`);
  const double = names.find((name, index) => names.indexOf(name) !== index);
  if (double !== undefined) throw new CommandError(`The first row has the name "${double}" twice.`);
  return names;
}

/** A number only where nothing of the text is lost: 007, and numbers too long or too large, stay texts. */
function jsonValueOf(text: string): unknown {
  if (text === 'true' || text === 'false') return text === 'true';
  if (!/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(text)) return text;
  const number = Number(text);
  const digits = text
    .replace(/[eE].*$/, '')
    .replace(/\D/g, '')
    .replace(/^0+/, '').length;
  return Number.isFinite(number) && (digits <= safeDigits || String(number) === text) ? number : text;
}

/** The fields of each row, with quotes and line breaks inside them as RFC 4180 has it. */
export async function* csvRows(
  texts: AsyncIterable<string>,
  delimiter: string,
): AsyncGenerator<string[], void> {
  let row: string[] = [];
  let field = '';
  let characters = 0;
  let number = 1;
  let quoted = false;
  let closed = false;
  const endField = () => {
    row.push(closed ? field : field.replace(/\r$/, ''));
    field = '';
    closed = false;
  };
  for await (const text of texts) {
    for (const character of text) {
      characters += 1;
      if (characters > mostRowCharacters)
        throw new CommandError(`Row ${number} is too long: is a quote missing?`);
      if (quoted) {
        if (character === '"') {
          quoted = false;
          closed = true;
        } else field += character;
      } else if (character === '"' && closed) {
        // Two quotes inside of quotes are one.
        field += '"';
        quoted = true;
        closed = false;
      } else if (character === '"' && (field === '' || (row.length === 0 && field === '\ufeff')))
        quoted = true;
      else if (character === delimiter) endField();
      else if (character === '\n') {
        endField();
        yield row;
        row = [];
        characters = 0;
        number += 1;
      } else if (!closed) field += character;
      else if (character !== '\r')
        throw new CommandError(`Row ${number} has text after a quote that ends a field.`);
    }
  }
  if (quoted) throw new CommandError(`Row ${number}: the file ends inside a quoted field.`);
  if (field !== '' || closed || row.length > 0) {
    endField();
    yield row;
  }
}
