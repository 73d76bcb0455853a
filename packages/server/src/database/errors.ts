/**
 * The faults of a database that a caller may act on, the same for both engines. Anything else that an
 * engine throws is a defect of ours and is passed on as it came.
 */

/** More work is waiting than the database takes on, or it could not be done in time. Worth trying again. */
export class DatabaseBusyError extends Error {
  override readonly name = 'DatabaseBusyError';
}

/** The engine cannot be used now: it is down, unreachable, closed, or its disk is full. */
export class DatabaseUnavailableError extends Error {
  override readonly name = 'DatabaseUnavailableError';
}

/** A row that another row forbids (`unique`), or that points to a row which does not exist (`foreign-key`). */
export class ConstraintViolation extends Error {
  override readonly name = 'ConstraintViolation';
  readonly constraint: 'unique' | 'foreign-key';

  constructor(constraint: 'unique' | 'foreign-key', message: string, options?: ErrorOptions) {
    super(message, options);
    this.constraint = constraint;
  }
}

/** Whether a query failed because a row with the same unique key exists. */
export function isUniqueViolation(error: unknown): boolean {
  return error instanceof ConstraintViolation && error.constraint === 'unique';
}

/** Whether a query failed because it points to a row that does not exist. */
export function isForeignKeyViolation(error: unknown): boolean {
  return error instanceof ConstraintViolation && error.constraint === 'foreign-key';
}
