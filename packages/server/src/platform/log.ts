import { pino } from 'pino';

/** Structured logging: an event with fields. Nothing that identifies a caller's secret is ever a field. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof logLevels)[number];

/**
 * Logs as JSON lines on standard error; standard output is left to what a person or a script waits for.
 * Redaction is a second line of defence: fields of these names should not be logged in the first place.
 */
export function createLog(level: LogLevel): { log: Log; flush(): void } {
  // Written in the background, so that a slow reader of the log slows nobody else.
  const destination = pino.destination({ dest: 2, sync: false, minLength: 0 });
  const log = pino(
    {
      level,
      base: { service: 'millrace' },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: {
        paths: ['authorization', 'password', 'secret', 'token', 'refreshToken'].flatMap((name) => [
          name,
          `*.${name}`,
        ]),
        censor: '[secret]',
      },
      serializers: { error: describeError },
    },
    destination,
  );
  return { log, flush: () => destination.flushSync() };
}

/** What is logged of an error: its kind, message, code and where it happened. */
export function describeError(error: unknown): object {
  if (!(error instanceof Error)) return { message: String(error) };
  return {
    name: error.name,
    message: error.message,
    ...('code' in error ? { code: String(error.code) } : {}),
    stack: error.stack,
    ...(error.cause === undefined ? {} : { cause: describeError(error.cause) }),
  };
}

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };
