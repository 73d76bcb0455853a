import { primaryCode, sqliteCode, sqliteCodeOf } from '../../platform/sqlite-codes.ts';

/** What went wrong in a thread, in a form that can travel. */
export interface Failure {
  readonly message: string;
  /** Whether nothing may be acknowledged from here on. */
  readonly fatal: boolean;
}

/**
 * The index of the write-ahead log could not grow, for lack of space. What was being committed is not part
 * of the log then, and nothing that was is in doubt.
 */
const indexCannotGrow = 4874;

/** What passes by itself or when somebody makes room: nothing was written and the file is as it was. */
const passing: readonly number[] = [
  sqliteCode.busy,
  sqliteCode.locked,
  sqliteCode.noMemory,
  sqliteCode.readOnly,
  sqliteCode.full,
  sqliteCode.cannotOpen,
];

/** A fault under a write. Whatever is not known to pass is fatal, a failed sync above all. */
export function writeFailure(error: unknown): Failure {
  const code = sqliteCodeOf(error);
  return {
    message: messageOf(error),
    fatal: code !== indexCannotGrow && !passing.includes(primaryCode(code)),
  };
}

/** A fault under a read, which puts nothing in doubt that was acknowledged. */
export function readFailure(error: unknown): Failure {
  return { message: messageOf(error), fatal: false };
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
