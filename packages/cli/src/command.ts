import type { Millrace } from '@millrace/client';
import type { Output } from './output.ts';
import type { Profiles } from './profile.ts';

/** A word that follows the command. */
export interface Argument {
  readonly name: string;
  readonly summary: string;
  readonly optional?: true;
  /** Takes all words that are left. */
  readonly many?: true;
}

export interface Option {
  readonly summary: string;
  /** What stands for the value in help, such as `file`; a switch has none. */
  readonly value?: string;
  readonly short?: string;
  /** May be given more than once. */
  readonly many?: true;
}

/** One command, as data: help, completion and the reference are derived from it. */
export interface Command {
  /** The noun and the verb, or one word alone. */
  readonly path: readonly string[];
  readonly summary: string;
  /** More than fits in a line. */
  readonly description?: string;
  readonly arguments?: readonly Argument[];
  readonly options?: Readonly<Record<string, Option>>;
  readonly examples: readonly string[];
  run(invocation: Invocation): Promise<void>;
}

/** A command with what was given to it. */
export interface Invocation {
  readonly arguments: Given;
  readonly options: GivenOptions;
  readonly output: Output;
  readonly profiles: Profiles;
  readonly environment: NodeJS.ProcessEnv;
  /** Ends with ctrl-C. */
  readonly signal: AbortSignal;
  /** The client with the credential and organization that flags, environment and profile give. */
  client(): Promise<Millrace>;
  /** The same for a service that this process has started, wherever that is. */
  clientAt(endpoint: string): Promise<Millrace>;
  /** Where the service is. */
  endpoint(): Promise<string>;
}

/** The words of a command by name. */
export interface Given {
  text(name: string): string;
  optional(name: string): string | undefined;
  many(name: string): readonly string[];
}

/** The options of a command by name. */
export interface GivenOptions {
  flag(name: string): boolean;
  text(name: string): string | undefined;
  many(name: string): readonly string[];
  /** A whole number in a range, or a usage error. */
  number(name: string, range?: { readonly least?: number; readonly most?: number }): number | undefined;
}

/** The command was not used as it is meant to be. Exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
  /** The command, where that much is known. */
  readonly command: Command | undefined;

  constructor(message: string, command?: Command) {
    super(message);
    this.command = command;
  }
}

/** Something a person can mend went wrong; the text says how. Exit code 1. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
}

/** The person has ended it. Exit code 130. */
export class InterruptedError extends Error {
  override readonly name = 'InterruptedError';

  constructor() {
    super('Interrupted.');
  }
}

export const globalOptions: Readonly<Record<string, Option>> = {
  endpoint: { value: 'url', summary: 'where the service is (MILLRACE_ENDPOINT)' },
  'api-key': { value: 'key', summary: 'the API key to use (MILLRACE_API_KEY)' },
  organization: { value: 'name', summary: 'the organization (MILLRACE_ORGANIZATION)' },
  profile: { value: 'name', summary: 'which profile of the config file (MILLRACE_PROFILE)' },
  json: { summary: 'print data as JSON' },
  quiet: { short: 'q', summary: 'print data and errors only' },
  'no-color': { summary: 'no colours (NO_COLOR)' },
  help: { short: 'h', summary: 'show help' },
};
