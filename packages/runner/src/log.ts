type Fields = Readonly<Record<string, unknown>>;

/**
 * Logging with fields: one JSON line for each call, which `taskLogs` shows with the request it belongs to.
 *
 * @example
 * ```ts
 * log.info('enriched', { page: '/pricing', milliseconds: 3 });
 * ```
 */
export const log = {
  debug: (text: string, fields?: Fields) => write('debug', text, fields),
  info: (text: string, fields?: Fields) => write('info', text, fields),
  warn: (text: string, fields?: Fields) => write('warn', text, fields),
  error: (text: string, fields?: Fields) => write('error', text, fields),
};

function write(level: 'debug' | 'info' | 'warn' | 'error', text: string, fields: Fields = {}): void {
  const line = JSON.stringify({ level, text, ...fields }, plain);
  if (level === 'warn' || level === 'error') console.error(line);
  else console.log(line);
}

/** Errors have no fields of their own that JSON would show. */
function plain(_name: string, value: unknown): unknown {
  if (value instanceof Error) return value.stack ?? `${value.name}: ${value.message}`;
  return typeof value === 'bigint' ? String(value) : value;
}
