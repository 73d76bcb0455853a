import type { LogLine } from './task-log.ts';

/** A line as text, so that it can hold anything: JSON escapes what a database would not take. */
export function storeLine({ time, version, requestId, stream, text }: LogLine): string {
  return JSON.stringify([time, version, requestId, stream, text]);
}

/** The lines of a chunk, which only `storeLine` wrote. */
export function restoreLines(content: string): LogLine[] {
  const lines: [number, string, string, LogLine['stream'], string][] = JSON.parse(content);
  return lines.map(([time, version, requestId, stream, text]) => ({
    time,
    version,
    requestId,
    stream,
    text,
  }));
}
