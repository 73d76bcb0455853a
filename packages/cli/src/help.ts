import { type Command, globalOptions, type Option } from './command.ts';
import { exitCodeMeanings } from './exit-codes.ts';

/** The help of all, of a noun, or of one command. */
export function helpOf(commands: readonly Command[], of: readonly string[]): string {
  const exact = commands.find(({ path }) => path.join(' ') === of.join(' '));
  const verbs = commands.filter(({ path }) => path.length > 1 && path[0] === of[0] && of.length === 1);
  if (exact !== undefined && verbs.length > 0) return `${commandHelp(exact)}\n\n${groupHelp(verbs, of)}`;
  if (exact !== undefined) return commandHelp(exact);
  const group = commands.filter(({ path }) => of.every((word, index) => path[index] === word));
  return of.length > 0 ? groupHelp(group, of) : wholeHelp(commands);
}

/** How a command is written, such as `millrace topic publish <topic> [--file <file>]`. */
export function usageOf(command: Command): string {
  const words = (command.arguments ?? []).map(({ name, optional, many }) => {
    const word = many === true ? `<${name}>...` : `<${name}>`;
    return optional === true ? `[${word}]` : word;
  });
  const options = command.options === undefined ? [] : ['[options]'];
  return ['millrace', ...command.path, ...words, ...options].join(' ');
}

function wholeHelp(commands: readonly Command[]): string {
  const nouns = [...new Set(commands.map(({ path }) => path[0] ?? ''))];
  const rows = nouns.map((noun): [string, string] => {
    const group = commands.filter(({ path }) => path[0] === noun);
    const [only] = group;
    const verbs = group.flatMap(({ path }) => path.slice(1, 2));
    if (verbs.length === 0) return [noun, only?.summary ?? ''];
    return [noun, [...new Set(verbs)].join(', ')];
  });
  return [
    'millrace: publish events, run code on them, keep state, query everything with SQL.',
    '',
    'usage: millrace <command> [options]',
    '',
    ...columns(rows),
    '',
    'options of every command:',
    ...columns(optionRows(globalOptions)),
    '',
    'exit codes:',
    ...columns(exitCodeMeanings.map(([code, meaning]) => [String(code), meaning])),
    '',
    'Data goes to stdout, everything else to stderr. Flags win over the environment, and that over the profile.',
    'Try `millrace demo` for a tour, and `millrace help <command>` for examples.',
  ].join('\n');
}

function groupHelp(group: readonly Command[], of: readonly string[]): string {
  const noun = of.join(' ');
  return [
    `usage: millrace ${noun} <command> [options]`,
    '',
    ...columns(group.map((command) => [command.path.slice(of.length).join(' ') || noun, command.summary])),
    '',
    `\`millrace help ${noun} <command>\` shows more of each.`,
  ].join('\n');
}

function commandHelp(command: Command): string {
  const words = (command.arguments ?? []).map(({ name, summary }): [string, string] => [
    `<${name}>`,
    summary,
  ]);
  const options = optionRows(command.options ?? {});
  return [
    command.summary,
    '',
    `usage: ${usageOf(command)}`,
    ...(command.description === undefined ? [] : ['', command.description]),
    ...(words.length === 0 ? [] : ['', ...columns(words)]),
    ...(options.length === 0 ? [] : ['', 'options:', ...columns(options)]),
    '',
    'examples:',
    ...command.examples.map((example) => `  ${example}`),
  ].join('\n');
}

export function optionRows(options: Readonly<Record<string, Option>>): [string, string][] {
  return Object.entries(options).map(([name, { short, value, summary }]) => [
    `${short === undefined ? '' : `-${short}, `}--${name}${value === undefined ? '' : ` <${value}>`}`,
    summary,
  ]);
}

function columns(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, summary]) => `  ${name.padEnd(width)}  ${summary}`);
}
