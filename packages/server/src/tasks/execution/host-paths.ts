import { fileURLToPath } from 'node:url';
import type { InvocationResult, TaskPool } from './execution.ts';

/** Where Lambda has the code of a function; what people see instead of a place on this machine. */
const codePlace = '/var/task';
const ownPlace = '/var/runtime';
const own = fileURLToPath(new URL('../../../../../', import.meta.url)).replace(/\/$/, '');

/** Takes the places of this machine out of a text that people get to see. */
export type HidePaths = (text: string) => string;

/** Hides where code and bootstraps are. Folders of code are named first: they may lie below the others. */
export function pathsHidden(code: readonly string[], host: readonly string[]): HidePaths {
  const places = [
    ...code.filter((path) => path !== '').map((path) => [path, codePlace] as const),
    ...[...host, own].filter((path) => path !== '').map((path) => [path, ownPlace] as const),
  ];
  return (text) => places.reduce((hidden, [path, place]) => hidden.replaceAll(path, place), text);
}

/** A pool whose errors name no place of this machine. */
export function withoutPaths(pool: TaskPool, hide: HidePaths): TaskPool {
  return {
    invoke: async (invocation) => resultWithoutPaths(await pool.invoke(invocation), hide),
    get trouble() {
      return pool.trouble === undefined ? undefined : hide(pool.trouble);
    },
    figures: () => pool.figures(),
    drain: () => pool.drain(),
    close: () => pool.close(),
  };
}

function resultWithoutPaths(result: InvocationResult, hide: HidePaths): InvocationResult {
  if (result.outcome === 'success') return result;
  const { type, message, trace } = result.error;
  const error = { type, message: hide(message), ...(trace === undefined ? {} : { trace: trace.map(hide) }) };
  return { ...result, error };
}
