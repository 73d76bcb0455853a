import { MillraceError } from '@millrace/client';
import { CommandError, UsageError } from './command.ts';
import { commands } from './commands/index.ts';
import { connectionOf } from './connection.ts';
import { helpOf } from './help.ts';
import { Output } from './output.ts';
import { parse } from './parse.ts';
import { Profiles } from './profile.ts';
import { version } from './version.ts';

/** What a process answers with. */
export const exitCodes = {
  ok: 0,
  failed: 1,
  usage: 2,
  refused: 3,
  notFound: 4,
  interrupted: 130,
} as const;

/** Runs a command line and answers its exit code. */
export async function run(words: readonly string[], environment = process.env): Promise<number> {
  const color =
    !words.includes('--no-color') && (environment.NO_COLOR ?? '') === '' && process.stderr.isTTY === true;
  const plain = new Output({ json: false, quiet: false, color });
  const interrupted = new AbortController();
  const interrupt = () => {
    // The second time the person means it.
    if (interrupted.signal.aborted) process.exit(exitCodes.interrupted);
    interrupted.abort(new DOMException('Interrupted', 'AbortError'));
  };
  process.on('SIGINT', interrupt);
  process.on('SIGTERM', interrupt);
  // Whoever read our output has had enough, as `head` does.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    process.exit(error.code === 'EPIPE' ? exitCodes.ok : exitCodes.failed);
  });
  try {
    const parsed = parse(commands, words);
    if (parsed.kind === 'version') plain.line(`millrace ${version}`);
    if (parsed.kind === 'help') plain.line(helpOf(commands, parsed.of));
    if (parsed.kind !== 'command') return exitCodes.ok;
    const { options } = parsed;
    const output = new Output({ json: options.flag('json'), quiet: options.flag('quiet'), color });
    const profiles = new Profiles(environment, options.text('profile') ?? environment.MILLRACE_PROFILE);
    await parsed.command.run({
      arguments: parsed.arguments,
      options,
      output,
      profiles,
      signal: interrupted.signal,
      ...connectionOf(options, environment, profiles),
    });
    return interrupted.signal.aborted ? exitCodes.interrupted : exitCodes.ok;
  } catch (error) {
    return report(plain, error, interrupted.signal, words.includes('--json'));
  } finally {
    process.off('SIGINT', interrupt);
    process.off('SIGTERM', interrupt);
  }
}

function report(output: Output, error: unknown, signal: AbortSignal, json: boolean): number {
  if (signal.aborted) {
    output.note('interrupted');
    return exitCodes.interrupted;
  }
  if (error instanceof MillraceError) {
    const { code, status, detail, requestId, errors } = error;
    if (json) process.stderr.write(`${JSON.stringify({ code, status, detail, requestId, errors })}\n`);
    else {
      output.error(detail);
      for (const { pointer, message } of errors) output.note(`  ${pointer}: ${message}`);
      if (requestId !== undefined && status >= 500) output.note(`  request ${requestId}`);
    }
    if (status === 401 || status === 403) return exitCodes.refused;
    return status === 404 ? exitCodes.notFound : exitCodes.failed;
  }
  if (error instanceof UsageError) {
    output.error(error.message);
    return exitCodes.usage;
  }
  if (error instanceof CommandError) {
    output.error(error.message);
    return exitCodes.failed;
  }
  output.error(error instanceof Error ? error.message : String(error));
  return exitCodes.failed;
}
