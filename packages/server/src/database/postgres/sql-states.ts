import { AbortedTransactionError } from 'kysely';
import pg from 'pg';
import { ConstraintViolation, DatabaseBusyError, DatabaseUnavailableError } from '../errors.ts';

const conflicts = new Set(['40001', '40P01']);
const busy = new Set(['55P03', '57014']);
/** Too few resources (53...) such as a full disk, a lost connection (08...), and a server that only reads. */
const unavailable = /^(53...|08...|57P0.|58030|25006|25P03)$/;

/** Whether the transaction lost against another and would succeed if tried again. */
export function isConflict(error: unknown): boolean {
  return error instanceof pg.DatabaseError && conflicts.has(error.code ?? '');
}

/** The error a caller sees for what PostgreSQL or the connection to it reported. */
export function errorOf(error: unknown): unknown {
  if (!(error instanceof Error) || isOurs(error)) return error;
  // What is not from the server is from the connection to it.
  if (!(error instanceof pg.DatabaseError)) {
    return new DatabaseUnavailableError(`PostgreSQL cannot be used: ${error.message}`, { cause: error });
  }
  const code = error.code ?? '';
  if (code === '23505') return new ConstraintViolation('unique', error.message, { cause: error });
  if (code === '23503') return new ConstraintViolation('foreign-key', error.message, { cause: error });
  if (busy.has(code)) return new DatabaseBusyError(error.message, { cause: error });
  if (unavailable.test(code)) return new DatabaseUnavailableError(error.message, { cause: error });
  return error;
}

/** Faults of the caller, and what has already been put in our terms. */
function isOurs(error: Error): boolean {
  return [
    AbortedTransactionError,
    ConstraintViolation,
    DatabaseBusyError,
    DatabaseUnavailableError,
    RangeError,
    TypeError,
  ].some((kind) => error instanceof kind);
}
