import { parseArgs } from 'node:util';
import {
  type Command,
  type Given,
  type GivenOptions,
  globalOptions,
  type Option,
  UsageError,
} from './command.ts';

export type Parsed =
  | { readonly kind: 'help'; readonly of: readonly string[] }
  | { readonly kind: 'version' }
  | {
      readonly kind: 'command';
      readonly command: Command;
      readonly arguments: Given;
      readonly options: GivenOptions;
    };

/** Finds out what is meant by the words of a command line. */
export function parse(commands: readonly Command[], words: readonly string[]): Parsed {
  if (words.length === 0) return { kind: 'help', of: [] };
  if (words[0] === '--version' || words[0] === 'version') return { kind: 'version' };
  const plain = wordsOf(words);
  if (plain[0] === 'help') return { kind: 'help', of: helped(commands, plain.slice(1)) };
  const command = find(commands, plain);
  if (command === undefined) {
    const noun = plain.slice(0, 2);
    const group = commands.some(({ path }) => path.length > 1 && path[0] === noun[0]);
    const wantsHelp = words.includes('--help') || words.includes('-h');
    if ((wantsHelp && (group || noun.length === 0)) || (group && noun.length === 1))
      return { kind: 'help', of: noun.slice(0, 1) };
    if (noun.length === 0) throw new UsageError('Which command? `millrace help` lists all.');
    throw new UsageError(unknownCommand(commands, noun));
  }
  const { values, positionals } = read(command, words);
  if (values.help === true) return { kind: 'help', of: command.path };
  const rest = positionals.slice(command.path.length);
  // `query` is a command and a noun; a word after it is a verb that there is not.
  if (rest.length > 0 && command.arguments === undefined && isNoun(commands, command))
    throw new UsageError(unknownCommand(commands, [...command.path, ...rest.slice(0, 1)]));
  return {
    kind: 'command',
    command,
    arguments: argumentsOf(command, rest),
    options: optionsOf(values),
  };
}

function isNoun(commands: readonly Command[], { path }: Command): boolean {
  return commands.some(
    (other) => other.path.length > path.length && path.every((word, index) => other.path[index] === word),
  );
}

/** What help is asked for, as far as it is known. */
function helped(commands: readonly Command[], words: readonly string[]): readonly string[] {
  const isKnown = commands.some(({ path }) => words.every((word, index) => path[index] === word));
  if (!isKnown) throw new UsageError(unknownCommand(commands, words));
  return words;
}

/** The command whose path the words begin with, leaving out options; of two, the longer one. */
function find(commands: readonly Command[], plain: readonly string[]): Command | undefined {
  return commands
    .filter(({ path }) => path.every((word, index) => plain[index] === word))
    .toSorted((one, other) => other.path.length - one.path.length)[0];
}

/** The words that are no options nor values of global ones. */
function wordsOf(words: readonly string[]): string[] {
  const plain: string[] = [];
  for (let index = 0; index < words.length; index += 1) {
    const word = words[index] ?? '';
    if (word === '--') break;
    if (!word.startsWith('-')) plain.push(word);
    else if (globalOptions[word.slice(2)]?.value !== undefined) index += 1;
  }
  return plain;
}

function read(command: Command, words: readonly string[]) {
  const known: Record<string, Option> = { ...globalOptions, ...command.options };
  try {
    return parseArgs({
      args: [...words],
      allowPositionals: true,
      allowNegative: false,
      options: Object.fromEntries(
        Object.entries(known).map(([name, option]) => [
          name,
          {
            type: option.value === undefined ? ('boolean' as const) : ('string' as const),
            ...(option.short === undefined ? {} : { short: option.short }),
            ...(option.many === undefined ? {} : { multiple: true }),
          },
        ]),
      ),
    });
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    const unknown = /Unknown option '--?([^']+)'/.exec(text)?.[1];
    if (unknown === undefined) throw new UsageError(text.split('. To specify')[0] ?? text, command);
    const near = nearest(unknown, Object.keys(known));
    throw new UsageError(
      `\`millrace ${command.path.join(' ')}\` has no option --${unknown}.${near === undefined ? '' : ` Did you mean --${near}?`}`,
      command,
    );
  }
}

function argumentsOf(command: Command, rest: readonly string[]): Given {
  const wanted = command.arguments ?? [];
  const given = new Map<string, readonly string[]>();
  let index = 0;
  for (const argument of wanted) {
    const words = argument.many === true ? rest.slice(index) : rest.slice(index, index + 1);
    index += words.length;
    if (words.length === 0 && argument.optional !== true)
      throw new UsageError(
        `\`millrace ${command.path.join(' ')}\` needs <${argument.name}>: ${argument.summary}.`,
        command,
      );
    // Most often a variable of the shell that is not set.
    if (words.includes(''))
      throw new UsageError(`<${argument.name}> is empty: it is ${argument.summary}.`, command);
    given.set(argument.name, words);
  }
  if (index < rest.length)
    throw new UsageError(`\`millrace ${command.path.join(' ')}\` does not take "${rest[index]}".`, command);
  return {
    text: (name) => given.get(name)?.[0] ?? '',
    optional: (name) => given.get(name)?.[0],
    many: (name) => given.get(name) ?? [],
  };
}

type Value = string | boolean | (string | boolean)[] | undefined;

function optionsOf(values: Readonly<Record<string, Value>>): GivenOptions {
  const text = (name: string) => {
    const value = values[name];
    return typeof value === 'string' ? value : undefined;
  };
  return {
    text,
    flag: (name) => values[name] === true,
    many: (name) => {
      const value = values[name];
      return Array.isArray(value) ? value.map(String) : [];
    },
    number: (name, { least = 0, most = Number.MAX_SAFE_INTEGER } = {}) => {
      const value = text(name);
      if (value === undefined) return undefined;
      const number = Number(value);
      if (!/^\d+$/.test(value) || number < least || number > most)
        throw new UsageError(`--${name} is a whole number from ${least} to ${most}, not "${value}".`);
      return number;
    },
  };
}

function unknownCommand(commands: readonly Command[], words: readonly string[]): string {
  const typed = words.join(' ');
  const near = nearest(typed, [
    ...commands.map(({ path }) => path.join(' ')),
    ...new Set(commands.map(({ path }) => path[0] ?? '')),
  ]);
  return `There is no command \`${typed}\`.${near === undefined ? '' : ` Did you mean \`${near}\`?`} \`millrace help\` lists all.`;
}

/** The name that is most like what was typed, if one is like it at all. */
function nearest(typed: string, names: readonly string[]): string | undefined {
  let best: string | undefined;
  let least = Math.max(2, Math.floor(typed.length / 3)) + 1;
  for (const name of names) {
    const distance = distanceOf(typed, name);
    if (distance < least) {
      least = distance;
      best = name;
    }
  }
  return best;
}

/** How many letters must be added, taken away or changed. */
function distanceOf(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_value, index) => index);
  for (let index = 1; index <= one.length; index += 1) {
    const next = [index];
    for (let place = 1; place <= other.length; place += 1) {
      const change = (row[place - 1] ?? 0) + (one[index - 1] === other[place - 1] ? 0 : 1);
      next.push(Math.min(change, (row[place] ?? 0) + 1, (next[place - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[other.length] ?? 0;
}
