import { ConstraintViolation, DatabaseBusyError, DatabaseUnavailableError } from '../errors.ts';
import type { Failure } from './protocol.ts';

/** SQLite's primary result codes, the low byte of an extended one. */
const primary = { busy: 5, locked: 6, readOnly: 8, inputOutput: 10, full: 13, cannotOpen: 14 } as const;
const extended = { foreignKey: 787, primaryKey: 1555, unique: 2067, rowId: 2579 } as const;

/** Whether the disk failed, as against the database being full, busy or asked for something wrong. */
export function isInputOutputError(code: number): boolean {
  return (code & 0xff) === primary.inputOutput;
}

/** The error a caller sees for what went wrong in a thread. */
export function errorOf(failure: Failure): Error {
  const { message, code } = failure;
  if (failure.fatal) return new DatabaseUnavailableError(message);
  switch (code) {
    case extended.unique:
    case extended.primaryKey:
    case extended.rowId:
      return new ConstraintViolation('unique', message);
    case extended.foreignKey:
      return new ConstraintViolation('foreign-key', message);
  }
  switch (code & 0xff) {
    case primary.busy:
    case primary.locked:
      return new DatabaseBusyError(message);
    case primary.full:
    case primary.inputOutput:
    case primary.readOnly:
    case primary.cannotOpen:
      return new DatabaseUnavailableError(message);
  }
  return new Error(message);
}
