import { type Command, globalOptions, type Option } from './command.ts';

export const shells = ['bash', 'zsh', 'fish'] as const;

/** What may follow each beginning of a command line. */
function continuations(commands: readonly Command[]): Map<string, Set<string>> {
  const next = new Map<string, Set<string>>();
  const add = (before: string, word: string) => {
    const words = next.get(before) ?? new Set();
    words.add(word);
    next.set(before, words);
  };
  for (const { path, options } of commands) {
    for (const [index, word] of path.entries()) {
      add(path.slice(0, index).join(' '), word);
      add(['help', ...path.slice(0, index)].join(' '), word);
    }
    for (const name of Object.keys({ ...options, ...globalOptions })) add(path.join(' '), `--${name}`);
  }
  add('', 'help');
  for (const shell of shells) add('completion', shell);
  return next;
}

/** Options that are followed by a value: what comes after one is no command. */
function optionsWithValues(commands: readonly Command[]): string[] {
  const all: [string, Option][] = [
    ...Object.entries(globalOptions),
    ...commands.flatMap(({ options }) => Object.entries(options ?? {})),
  ];
  const names = all
    .filter(([, { value }]) => value !== undefined)
    .flatMap(([name, { short }]) => [`--${name}`, ...(short === undefined ? [] : [`-${short}`])]);
  // `-f` is a file here and a switch there; as a switch it does no harm where nothing but words follow.
  const switches = new Set(all.flatMap(([, { value, short }]) => (value === undefined ? [`-${short}`] : [])));
  return [...new Set(names)].filter((name) => !switches.has(name));
}

export function completionScript(shell: string, commands: readonly Command[]): string | undefined {
  const entries = [...continuations(commands)];
  const withValues = optionsWithValues(commands);
  if (shell === 'bash' || shell === 'zsh') return bashScript(entries, withValues, shell === 'zsh');
  return shell === 'fish' ? fishScript(entries, withValues) : undefined;
}

type Entries = readonly (readonly [string, ReadonlySet<string>])[];

function bashScript(entries: Entries, withValues: readonly string[], zsh: boolean): string {
  const cases = entries.map(([before, words]) => `      "${before}") words="${[...words].join(' ')}" ;;`);
  return `${zsh ? zshBeginning : ''}_millrace() {
  local before="" word index words="" value=""
  for ((index = 1; index < COMP_CWORD; index++)); do
    word="\${COMP_WORDS[index]}"
    if [[ -n "$value" ]]; then value=""; continue; fi
    case "$word" in
      ${withValues.join('|')}) value=1; continue ;;
      -*) continue ;;
    esac
    before="\${before:+$before }$word"
  done
  COMPREPLY=()
  # The value of an option: files are what can be offered.
  [[ -n "$value" ]] && return
  # Words after the command are its arguments; its options may still follow.
  while :; do
    case "$before" in
${cases.join('\n')}
    esac
    [[ -n "$words" || "$before" != *" "* ]] && break
    before="\${before% *}"
    [[ "\${COMP_WORDS[COMP_CWORD]}" != -* ]] && break
  done
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _millrace millrace`;
}

/** The completion of zsh may not have been started by whoever sources this. */
const zshBeginning = `(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
autoload -U +X bashcompinit && bashcompinit
`;

function fishScript(entries: Entries, withValues: readonly string[]): string {
  const cases = entries.map(
    ([before, words]) => `      case '${before}'\n        set offered ${[...words].join(' ')}`,
  );
  return `function __millrace_offer
  set -l current (commandline -ct)
  set -l before
  set -l value 0
  for word in (commandline -opc)[2..]
    if test $value = 1
      set value 0
    else if contains -- $word ${withValues.join(' ')}
      set value 1
    else if not string match -q -- '-*' $word
      set -a before $word
    end
  end
  set -l offered
  # Words after the command are its arguments; its options may still follow.
  while test $value = 0
    switch "$before"
${cases.join('\n')}
    end
    set -q offered[1]; and break
    set -q before[2]; or break
    string match -q -- '-*' "$current"; or break
    set -e before[-1]
  end
  set -l found
  for word in $offered
    test (string sub -l (string length -- "$current") -- $word) = "$current"; and set -a found $word
  end
  # The value of an option or an argument: files are what can be offered.
  if set -q found[1]
    printf '%s\\n' $found
  else
    __fish_complete_path "$current"
  end
end
complete -c millrace -f -a '(__millrace_offer)'`;
}
