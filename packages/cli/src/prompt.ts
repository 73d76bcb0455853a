import { cancel, confirm, password, text } from '@clack/prompts';
import { CommandError } from './command.ts';

const shown = { output: process.stderr };

function answered<Answer>(answer: Answer): Exclude<Answer, symbol> {
  if (isAnswer(answer)) return answer;
  cancel('Nothing was changed.', shown);
  throw new CommandError('cancelled');
}

function isAnswer<Answer>(answer: Answer): answer is Exclude<Answer, symbol> {
  return typeof answer !== 'symbol';
}

function needTerminal(what: string, instead: string): void {
  if (process.stdin.isTTY !== true)
    throw new CommandError(`${what} is needed, and there is no terminal to ask. ${instead}`);
}

/** Asks for a line of text. */
export async function askText(message: string, instead: string): Promise<string> {
  needTerminal(message, instead);
  return answered(
    await text({
      message,
      ...shown,
      validate: (value) => ((value ?? '') === '' ? 'It cannot be empty.' : undefined),
    }),
  );
}

/** Asks for something that must not be seen. */
export async function askSecret(message: string, instead: string): Promise<string> {
  needTerminal(message, instead);
  return answered(await password({ message, ...shown }));
}

/** Asks before something that cannot be undone, unless `--yes` was given. */
export async function agreeTo(message: string, yes: boolean): Promise<void> {
  if (yes) return;
  needTerminal('A confirmation', 'Give --yes to go ahead.');
  if (!answered(await confirm({ message, initialValue: false, ...shown })))
    throw new CommandError('Nothing was changed.');
}

/** All of stdin, for what is piped in. */
export async function readInput(): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks).toString('utf8');
}
