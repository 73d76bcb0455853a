import { type Command, globalOptions, type Option } from './command.ts';
import { exitCodeMeanings } from './exit-codes.ts';
import { optionRows, usageOf } from './help.ts';

const introduction = `# The command line

<!-- Derived from the commands themselves by packages/cli/src/reference.ts; a test holds this page to it. -->

\`millrace\` is noun and then verb. After \`npm install\` in the repository it is \`npx millrace\`.

- Data goes to stdout, everything else to stderr. With \`--json\` data is JSON, one value a line, and so are errors.
- Colours and progress bars are for terminals only, and \`NO_COLOR\` or \`--no-color\` turns colours off.
- What cannot be undone asks first; \`--yes\` answers.
- Ctrl-C ends a command and leaves nothing half done. The second one ends it at once.
- Nothing that the service, a message or a task says can steer the terminal: control characters are shown as escapes.

## Where it connects to

Flags win over the environment, and that over the profile. Profiles are in \`millrace/config.json\` of the XDG
config folder (\`~/.config\` unless \`XDG_CONFIG_HOME\` is set), which only its owner may read. A credential that was
kept is sent to the service it was kept for, and to no other.

| flag | environment | otherwise |
| --- | --- | --- |
| \`--endpoint\` | \`MILLRACE_ENDPOINT\` | the profile, or \`http://127.0.0.1:8080\` |
| \`--api-key\` | \`MILLRACE_API_KEY\` | the API key or the session of the profile |
| \`--organization\` | \`MILLRACE_ORGANIZATION\` | the profile |
| \`--profile\` | \`MILLRACE_PROFILE\` | the one of \`profile use\`, or \`default\` |
`;

/** The reference of all commands, as Markdown. */
export function referenceOf(commands: readonly Command[]): string {
  const exits = table(
    ['code', 'meaning'],
    exitCodeMeanings.map(([code, text]) => [String(code), text]),
  );
  return [
    introduction,
    `## Exit codes\n\n${exits}\n`,
    `## Options of every command\n\n${optionTable(globalOptions)}\n`,
    '## Commands\n',
    ...commands.map(section),
  ].join('\n');
}

function section(command: Command): string {
  const words = (command.arguments ?? []).map(({ name, summary }) => [`\`<${name}>\``, summary]);
  return [
    `### ${command.path.join(' ')}\n`,
    `${command.summary}.${command.description === undefined ? '' : ` ${command.description.replaceAll('\n', ' ')}`}\n`,
    `    ${usageOf(command)}\n`,
    ...(words.length === 0 ? [] : [`${table(['argument', 'meaning'], words)}\n`]),
    ...(command.options === undefined ? [] : [`${optionTable(command.options)}\n`]),
    `Examples:\n\n${command.examples.map((example) => `    ${example}`).join('\n')}\n`,
  ].join('\n');
}

function optionTable(options: Readonly<Record<string, Option>>): string {
  return table(
    ['option', 'meaning'],
    optionRows(options).map(([name, summary]) => [`\`${name}\``, summary]),
  );
}

function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(heads), line(heads.map(() => '---')), ...rows.map(line)].join('\n');
}
