import { primaryCode, sqliteCode } from '../../platform/sqlite-codes.ts';
import { ConstraintViolation, DatabaseBusyError, DatabaseUnavailableError } from '../errors.ts';
import type { Failure } from './protocol.ts';

const extended = { foreignKey: 787, primaryKey: 1555, unique: 2067, rowId: 2579 } as const;

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
  switch (primaryCode(code)) {
    case sqliteCode.busy:
    case sqliteCode.locked:
      return new DatabaseBusyError(message);
    case sqliteCode.full:
    case sqliteCode.inputOutput:
    case sqliteCode.readOnly:
    case sqliteCode.cannotOpen:
      return new DatabaseUnavailableError(message);
  }
  return new Error(message);
}
