import type { EngineLimits, Failure } from '../engine.ts';
import { placed } from '../place.ts';
import type { Failure as EngineFailure } from './protocol.ts';
import type { Ending } from './watchdog.ts';

const mebibyte = 1024 * 1024;
/** A statement can make a message of any length, and what is looked for in it takes time by its square. */
const mostCharacters = 4000;

/** What is told of a run that was ended from outside. */
export function endingMessage(ending: Ending, limits: EngineLimits): string {
  switch (ending) {
    case 'cancelled':
      return 'The query was cancelled.';
    case 'too-long':
      return `The query took longer than the ${limits.milliseconds / 1000} seconds it may take.`;
    case 'too-much-memory':
      return tooMuchMemory(limits);
    case 'too-much-disk':
      return tooMuchDisk(limits);
  }
}

/** What is told of a failure: DuckDB's own message and place, without what belongs to the machine. */
export function failureOf(failure: EngineFailure, sql: string, limits: EngineLimits): Failure {
  const { type, position } = failure;
  const message = shortened(failure.message);
  if (type === 'Result') {
    return failed(
      `The result is larger than the ${mebibytes(limits.resultBytes)} it may have. Use LIMIT, or ask for less.`,
    );
  }
  if (/max_temp_directory_size|temporary directory|No space left/i.test(message))
    return failed(tooMuchDisk(limits));
  if (/^Out of Memory/i.test(type) || /out of memory|memory_limit|failed to allocate/i.test(message)) {
    return failed(tooMuchMemory(limits));
  }
  if (isFatal(failure)) return failed('The engine met a fault of its own with this query.');
  if (type === 'IO' || type === 'Permission') return failed(withoutPaths(`${type} Error: ${message}`));
  const missing = /^Table with name (.+) does not exist/.exec(message)?.[1];
  // The engine suggests tables of its own, which nobody means.
  const told = missing === undefined ? message : message.split('\n')[0];
  const named = type === '' ? `${told}` : `${type} Error: ${told}`;
  return { ...failed(placed(sql, withoutPaths(withoutSettings(named)), position)), missingTable: missing };
}

/** After such an error DuckDB does not go on. */
export function isFatal({ type }: EngineFailure): boolean {
  return /^(INTERNAL|FATAL)/i.test(type);
}

function shortened(message: string): string {
  return message.length <= mostCharacters ? message : `${message.slice(0, mostCharacters)}…`;
}

function failed(message: string): Failure {
  return { kind: 'failed', message };
}

function tooMuchMemory(limits: EngineLimits): string {
  return `The query needs more memory than the ${mebibytes(limits.memoryBytes)} it may use.`;
}

function tooMuchDisk(limits: EngineLimits): string {
  return `The query needs more temporary space than the ${mebibytes(limits.temporaryBytes)} it may use.`;
}

function mebibytes(bytes: number): string {
  return `${Math.round(bytes / mebibyte)} MiB`;
}

/** Advice to change a setting is of no use to one who cannot. */
function withoutSettings(message: string): string {
  return message.replace(/[^.\n]*\bSET \w+[^.\n]*\.?/g, '').trim();
}

function withoutPaths(message: string): string {
  return message
    .replace(/"[^"\n]*\/[^"\n]*\.(?:parquet|ndjson)"/g, 'a file')
    .replace(/'[^'\n]*\/[^'\n]*\.(?:parquet|ndjson)'/g, 'a file')
    .replace(/(?:[\w=.%-]*\/)+[\w=.%-]+\.(?:parquet|ndjson)\b/g, 'a file');
}
