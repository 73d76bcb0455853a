import { cancel, confirm, password, text } from '@clack/prompts';
import { CommandError, InterruptedError } from './command.ts';

const shown = { output: process.stderr };
const mostInput = 16 * 1024 * 1024;

/** Who asks: the signal of an invocation ends the question. */
interface Asking {
  readonly signal: AbortSignal;
}

function answered<Answer>(answer: Answer): Exclude<Answer, symbol> {
  if (isAnswer(answer)) return answer;
  cancel('Nothing was changed.', shown);
  throw new InterruptedError();
}

function isAnswer<Answer>(answer: Answer): answer is Exclude<Answer, symbol> {
  return typeof answer !== 'symbol';
}

function needTerminal(what: string, instead: string): void {
  if (process.stdin.isTTY !== true)
    throw new CommandError(`${what} is needed, and there is no terminal to ask. ${instead}`);
}

/** Asks for a line of text. */
export async function askText({ signal }: Asking, message: string, instead: string): Promise<string> {
  needTerminal(message, instead);
  const validate = (value: string | undefined) =>
    (value ?? '').trim() === '' ? 'It cannot be empty.' : undefined;
  return answered(await text({ message, ...shown, signal, validate })).trim();
}

/** Asks for something that must not be seen. */
export async function askSecret({ signal }: Asking, message: string, instead: string): Promise<string> {
  needTerminal(message, instead);
  return answered(await password({ message, ...shown, signal }));
}

/** Asks before something that cannot be undone, unless `--yes` was given. */
export async function agreeTo({ signal }: Asking, message: string, yes: boolean): Promise<void> {
  if (yes) return;
  needTerminal('A confirmation', 'Give --yes to go ahead.');
  if (!answered(await confirm({ message, initialValue: false, ...shown, signal })))
    throw new CommandError('Nothing was changed.');
}

/** All of stdin, for what is piped in. */
export async function readInput({ signal }: Asking): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  const end = () => process.stdin.destroy();
  signal.addEventListener('abort', end, { once: true });
  try {
    for await (const chunk of process.stdin) {
      bytes += chunk.length;
      if (bytes > mostInput) throw new CommandError(`More than ${mostInput} bytes were piped in.`);
      chunks.push(Buffer.from(chunk));
    }
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener('abort', end);
  }
  signal.throwIfAborted();
  return Buffer.concat(chunks).toString('utf8');
}
