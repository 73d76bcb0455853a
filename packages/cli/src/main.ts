import { MillraceError } from '@millrace/client';
import { nextStepOf, sentenceOf } from './advice.ts';
import { CommandError, InterruptedError, UsageError } from './command.ts';
import { commands } from './commands/index.ts';
import { connectionOf } from './connection.ts';
import { exitCodes } from './exit-codes.ts';
import { helpOf, usageOf } from './help.ts';
import { Output } from './output.ts';
import { type Parsed, parse } from './parse.ts';
import { Profiles } from './profile.ts';
import { safeJson } from './safe-text.ts';
import { version } from './version.ts';

/** Runs a command line and answers its exit code. */
export async function run(words: readonly string[], environment = process.env): Promise<number> {
  const flags = words.slice(0, words.includes('--') ? words.indexOf('--') : words.length);
  // The prompts look at the environment.
  if (flags.includes('--no-color')) environment.NO_COLOR = '1';
  const color = (environment.NO_COLOR ?? '') === '' && environment.TERM !== 'dumb';
  const plain = new Output({ json: flags.includes('--json'), quiet: false, color });
  const interrupted = new AbortController();
  const interrupt = () => {
    // The second time the person means it.
    if (interrupted.signal.aborted) process.exit(exitCodes.interrupted);
    interrupted.abort(new InterruptedError());
  };
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  for (const signal of signals) process.on(signal, interrupt);
  // Whoever read our output has had enough, as `head` does.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    process.exit(error.code === 'EPIPE' ? exitCodes.ok : exitCodes.failed);
  });
  process.stderr.on('error', () => {});
  let parsed: Parsed | undefined;
  try {
    parsed = parse(commands, words);
    if (parsed.kind === 'version') plain.value({ version }, () => `millrace ${version}`);
    if (parsed.kind === 'help') plain.line(helpOf(commands, parsed.of));
    if (parsed.kind !== 'command') return exitCodes.ok;
    const { options } = parsed;
    const output = new Output({ json: options.flag('json'), quiet: options.flag('quiet'), color });
    const profiles = new Profiles(environment, options.text('profile') || environment.MILLRACE_PROFILE);
    await parsed.command.run({
      arguments: parsed.arguments,
      options,
      output,
      profiles,
      environment,
      signal: interrupted.signal,
      ...connectionOf(options, environment, profiles, output),
    });
    return interrupted.signal.aborted ? exitCodes.interrupted : exitCodes.ok;
  } catch (error) {
    return report(plain, error, interrupted.signal, parsed?.kind === 'command' ? parsed : undefined);
  } finally {
    for (const signal of signals) process.off(signal, interrupt);
  }
}

type ParsedCommand = Extract<Parsed, { kind: 'command' }>;

/** Tells what went wrong on stderr, as JSON if the data would be, and answers the exit code. */
function report(
  output: Output,
  error: unknown,
  signal: AbortSignal,
  parsed: ParsedCommand | undefined,
): number {
  if (signal.aborted || error instanceof InterruptedError) {
    tell(output, { code: 'INTERRUPTED', detail: 'Interrupted.' }, 'interrupted');
    return exitCodes.interrupted;
  }
  if (error instanceof MillraceError) return reportProblem(output, error, parsed);
  const detail = error instanceof Error ? error.message : String(error);
  const isUsage = error instanceof UsageError;
  const known = isUsage || error instanceof CommandError;
  tell(output, { code: isUsage ? 'USAGE' : known ? 'FAILED' : 'UNEXPECTED', detail });
  if (!isUsage) return exitCodes.failed;
  const command = error.command ?? parsed?.command;
  if (command !== undefined && !output.json) output.note(`usage: ${usageOf(command)}`);
  return exitCodes.usage;
}

function reportProblem(output: Output, error: MillraceError, parsed: ParsedCommand | undefined): number {
  const { code, status, requestId, errors } = error;
  if (code === 'ORGANIZATION_MISSING') {
    const advice = 'Which organization? Give --organization, or choose one with `millrace org use <name>`.';
    tell(output, { code, detail: advice });
    return exitCodes.usage;
  }
  tell(output, { code, status, detail: sentenceOf(error, parsed?.arguments), requestId, errors });
  if (!output.json) {
    for (const { pointer, message } of errors) output.note(`  ${pointer}: ${message}`);
    if (requestId !== undefined && status >= 500) output.note(`  request ${requestId}`);
    const next = nextStepOf(error, parsed?.arguments);
    if (next !== undefined) output.note(`  ${next}`);
  }
  if (status === 401 || status === 403) return exitCodes.refused;
  return status === 404 ? exitCodes.notFound : exitCodes.failed;
}

function tell(
  output: Output,
  problem: { readonly code: string; readonly detail: string; readonly [field: string]: unknown },
  text?: string,
): void {
  if (output.json) process.stderr.write(`${safeJson(problem)}\n`);
  else if (text === undefined) output.error(problem.detail);
  else output.note(text);
}
