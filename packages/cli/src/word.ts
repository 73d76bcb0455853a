import { UsageError } from './command.ts';

/** One of a few words, in whatever case it was typed. */
export function wordOf<Word extends string>(words: readonly Word[], typed: string): Word {
  const found = words.find((word) => word === typed.toUpperCase());
  if (found === undefined) throw new UsageError(`"${typed}" is not one of ${words.join(', ')}.`);
  return found;
}
