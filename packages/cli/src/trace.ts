const mostLines = 50;

/**
 * Where in the code an error of a task happened, where the service tells: lines of text without the error
 * itself, which a trace of Node begins with.
 */
export function traceOf(error: { readonly type: string; readonly message: string }): string[] {
  const fields = new Map<string, unknown>(Object.entries(error));
  const trace = fields.get('stackTrace') ?? fields.get('trace');
  if (!Array.isArray(trace)) return [];
  const lines = trace.flatMap((entry: unknown) => String(entry).trimEnd().split('\n'));
  const told = `${error.type}: ${error.message}`.split('\n');
  const begins = told.every((line, index) => lines[index]?.trim() === line.trim()) ? told.length : 0;
  return lines.slice(begins, begins + mostLines);
}
