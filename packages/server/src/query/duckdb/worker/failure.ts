/** An error of DuckDB taken apart. With `errors_as_json` it is an object; parser errors have words before it. */
export function describeFailure(error: unknown): { type: string; message: string; position?: number } {
  const text = error instanceof Error ? error.message : String(error);
  const start = text.indexOf('{');
  try {
    const told: unknown = JSON.parse(text.slice(start));
    if (start >= 0 && typeof told === 'object' && told !== null && 'exception_message' in told) {
      const type = 'exception_type' in told ? String(told.exception_type) : '';
      const message = String(told.exception_message);
      const position = 'position' in told ? Number(told.position) : Number.NaN;
      return Number.isSafeInteger(position) ? { type, message, position } : { type, message };
    }
  } catch {
    // It is told as it is.
  }
  const [, type = '', message = text] = /^([A-Z][\w ]*?) Error: ([\s\S]*)$/.exec(text) ?? [];
  return { type, message };
}
