import type { InvocationError } from './execution.ts';

const longestText = 32 * 1024;
const longestTrace = 50;

/** Of a process that was ended for its memory, whoever noticed. */
export function outOfMemory(memoryMb: number): InvocationError {
  return {
    type: 'Runtime.OutOfMemory',
    message: `The process used more than its ${memoryMb} MB of memory.`,
  };
}

/** Reads what a runtime says about an error. It comes from foreign code, so anything may be missing. */
export function parseRuntimeError(body: Buffer, headerType?: string | readonly string[]): InvocationError {
  const stated = typeof headerType === 'string' ? headerType : undefined;
  let value: unknown;
  try {
    value = JSON.parse(body.toString('utf8'));
  } catch {
    const message = body.byteLength === 0 ? 'The runtime said nothing more.' : clip(body.toString('utf8'));
    return { type: clip(stated ?? 'Runtime.Unknown'), message };
  }
  const fields: Map<string, unknown> = new Map(
    typeof value === 'object' && value !== null ? Object.entries(value) : [],
  );
  const trace = fields.get('trace') ?? fields.get('stackTrace');
  return {
    type: clip(textOf(fields.get('errorType')) ?? stated ?? 'Runtime.Unknown'),
    message: clip(textOf(fields.get('errorMessage')) ?? JSON.stringify(value)),
    ...(Array.isArray(trace)
      ? { trace: trace.slice(0, longestTrace).map((line) => clip(String(line))) }
      : {}),
  };
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function clip(text: string): string {
  return text.length > longestText ? `${text.slice(0, longestText)}…` : text;
}
