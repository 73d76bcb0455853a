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
  const line = lineOf(level, text, fields);
  if (level === 'warn' || level === 'error') console.error(line);
  else console.log(line);
}

/** Fields cannot take the place of level and text, and those that JSON cannot hold are left out. */
function lineOf(level: string, text: string, fields: Fields): string {
  try {
    const { level: _level, text: _text, ...others } = fields;
    return JSON.stringify({ level, text, ...others }, plain);
  } catch (error) {
    return JSON.stringify({ level, text, fieldsLeftOut: String(error) });
  }
}

/** Errors have no fields of their own that JSON would show. */
function plain(_name: string, value: unknown): unknown {
  if (value instanceof Error) return value.stack ?? `${value.name}: ${value.message}`;
  return typeof value === 'bigint' ? String(value) : value;
}
