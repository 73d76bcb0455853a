import { type Command, globalOptions } from './command.ts';

export const shells = ['bash', 'zsh', 'fish'] as const;

/** What may follow each beginning of a command line. */
function continuations(commands: readonly Command[]): Map<string, Set<string>> {
  const next = new Map<string, Set<string>>();
  const add = (before: string, word: string) => {
    const words = next.get(before) ?? new Set();
    words.add(word);
    next.set(before, words);
  };
  for (const command of commands) {
    for (const [index, word] of command.path.entries()) add(command.path.slice(0, index).join(' '), word);
    for (const name of Object.keys({ ...command.options, ...globalOptions }))
      add(command.path.join(' '), `--${name}`);
  }
  return next;
}

export function completionScript(shell: string, commands: readonly Command[]): string | undefined {
  const entries = [...continuations(commands)];
  if (shell === 'bash' || shell === 'zsh') return bashScript(entries, shell === 'zsh');
  return shell === 'fish' ? fishScript(entries) : undefined;
}

type Entries = readonly (readonly [string, ReadonlySet<string>])[];

function bashScript(entries: Entries, zsh: boolean): string {
  const cases = entries.map(([before, words]) => `    "${before}") words="${[...words].join(' ')}" ;;`);
  return `${zsh ? 'autoload -U +X bashcompinit && bashcompinit\n' : ''}_millrace() {
  local before="" word index words=""
  for ((index = 1; index < COMP_CWORD; index++)); do
    word="\${COMP_WORDS[index]}"
    [[ "$word" == -* ]] && continue
    before="\${before:+$before }$word"
  done
  case "$before" in
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _millrace millrace`;
}

function fishScript(entries: Entries): string {
  const lines = [
    'function __millrace_before',
    "  string join ' ' (commandline -opc | tail -n +2 | string match -v -- '-*')",
    'end',
  ];
  for (const [before, words] of entries)
    lines.push(
      `complete -c millrace -f -n 'test "$(__millrace_before)" = "${before}"' -a '${[...words].join(' ')}'`,
    );
  return lines.join('\n');
}
