/** What both engines store alike. */
export type Parameter = string | number | bigint | Uint8Array | null;

/**
 * Checks the values bound to a query before they reach an engine, because the engines disagree on the
 * others: SQLite keeps a NUL in a text that PostgreSQL refuses, and neither knows `undefined`.
 */
export function storable(values: readonly unknown[]): Parameter[] {
  return values.map((value) => {
    if (value === null || typeof value === 'bigint' || value instanceof Uint8Array) return value;
    if (typeof value === 'string') {
      if (value.includes('\0')) throw new TypeError('A text with a NUL character cannot be stored');
      return value;
    }
    if (typeof value === 'number') {
      if (Number.isInteger(value) ? Number.isSafeInteger(value) : Number.isFinite(value)) return value;
      throw new TypeError('A number outside the safe range cannot be stored');
    }
    throw new TypeError(`A value of type ${typeof value} cannot be stored`);
  });
}
