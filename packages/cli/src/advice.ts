import type { MillraceError } from '@millrace/client';
import type { Given } from './command.ts';

/** What a person at the command line should know of a problem. */
interface Advice {
  /** Instead of what the service says, where that names operations rather than commands. */
  readonly says?: (named: Named) => string;
  /** What to do next. */
  readonly next?: (named: Named) => string;
}

/** What the command was given under a name, or a placeholder. */
type Named = (argument: string) => string;

/** By the code of the problem: texts may change. */
const advices: Readonly<Record<string, Advice>> = {
  CREDENTIAL_MISSING: { says: () => 'You are not signed in. Run `millrace login`.' },
  CREDENTIAL_INVALID: { next: () => 'Sign in with `millrace login`, or give another --api-key.' },
  SESSION_REQUIRED: { next: () => 'Run `millrace login`, and give no API key.' },
  RATE_LIMITED: {
    says: () => 'The organization is at its rate limit. Try again in a moment.',
    next: () => 'An administrator can change it with `millrace org rate-limit <level>`.',
  },
  ORGANIZATION_NOT_FOUND: { next: () => '`millrace org list` lists yours.' },
  MEMBER_NOT_FOUND: { next: () => '`millrace org members` lists them.' },
  ACCOUNT_NOT_FOUND: {
    says: (named) => `Nobody has signed up with ${named('email')}. With --username an account is made.`,
  },
  LAST_ADMIN: { next: () => '`millrace org role <username> ADMIN` makes another.' },
  API_KEY_NOT_FOUND: { next: () => '`millrace key list` lists them.' },
  TOPIC_NOT_FOUND: {
    next: (named) =>
      `\`millrace topic list\` lists topics, and \`millrace topic set ${named('topic')} --batch\` defines one.`,
  },
  SCHEMA_NOT_FOUND: {
    says: (named) => `The topic ${named('topic')} has no schema.`,
    next: (named) =>
      `\`millrace topic schema set ${named('topic')} <file>\` sets one, and \`millrace topic schema recalculate ${named('topic')}\` infers one from its messages.`,
  },
  BATCH_REQUIRED: {
    says: (named) => `The topic ${named('topic')} has no files.`,
    next: (named) => `\`millrace topic set ${named('topic')} --batch\` makes its messages land in files.`,
  },
  FILE_NOT_FOUND: { next: (named) => `\`millrace topic files ${named('topic')}\` lists them.` },
  TASK_NOT_FOUND: { next: () => '`millrace task list` lists them.' },
  VERSION_NOT_FOUND: { next: (named) => `\`millrace task versions ${named('task')}\` lists them.` },
  QUERY_NOT_FOUND: { next: () => '`millrace query history` lists the latest.' },
};

/** The codes that there is advice for. */
export const advised: readonly string[] = Object.keys(advices);

/** What went wrong, in the words of the command line. */
export function sentenceOf(error: MillraceError, given?: Given): string {
  return advices[error.code]?.says?.(namedIn(given)) ?? error.detail;
}

/** What to do about it, where that is known. */
export function nextStepOf(error: MillraceError, given?: Given): string | undefined {
  return advices[error.code]?.next?.(namedIn(given));
}

function namedIn(given: Given | undefined): Named {
  return (argument) => given?.optional(argument) ?? `<${argument}>`;
}
