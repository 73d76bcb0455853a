import { DatabaseBusyError, DatabaseUnavailableError } from '../database/errors.ts';

/** Whether the database failed, and not what was asked of it. */
export function isFaultOfDatabase(error: unknown): boolean {
  return error instanceof DatabaseBusyError || error instanceof DatabaseUnavailableError;
}
