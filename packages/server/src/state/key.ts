import { type Problem, problem } from '../platform/problem.ts';

/** How large keys may be. */
export interface KeyLimits {
  readonly stateKeyParts: number;
  /** Bytes of a merged key. */
  readonly stateKeyBytes: number;
}

/**
 * The parts of a key as one text: joined with `:`, and with `\` before any `\` or `:` inside a part.
 *
 * No two lists of parts give the same text. A list begins with the parts of another exactly when its text
 * is that of the other or begins with it and a `:`, so that entries below a prefix are one range of keys.
 */
export function mergeKey(parts: readonly string[]): string {
  return parts.map(escapePart).join(':');
}

function escapePart(part: string): string {
  return /[\\:]/.test(part) ? part.replace(/[\\:]/g, '\\$&') : part;
}

/**
 * Merges the parts of a key, or says what is wrong with them. Keys come from requests and from fields of
 * messages, which no schema has checked, so everything about them is checked here.
 */
export function checkedKey(
  parts: readonly string[],
  field: 'keyParts' | 'keyPrefix',
  limits: KeyLimits,
): string | Problem {
  if (field === 'keyParts' && parts.length === 0) return invalid(`/${field}`, 'must have at least one part');
  if (parts.length > limits.stateKeyParts) {
    return invalid(`/${field}`, `must not have more than ${limits.stateKeyParts} parts`);
  }
  for (const [index, part] of parts.entries()) {
    if (part === '') return invalid(`/${field}/${index}`, 'must not be empty');
    if (part.includes('\0')) return invalid(`/${field}/${index}`, 'must not have a NUL character');
    // Half a character has no UTF-8: engines would put the same replacement for every one of them.
    if (!part.isWellFormed()) return invalid(`/${field}/${index}`, 'must be well-formed Unicode');
  }
  const mergedKey = mergeKey(parts);
  if (Buffer.byteLength(mergedKey) > limits.stateKeyBytes) {
    return invalid(`/${field}`, `must not have more than ${limits.stateKeyBytes} bytes as a merged key`);
  }
  return mergedKey;
}

function invalid(pointer: string, message: string): Problem {
  const detail = `The request is not valid: ${pointer} ${message}.`;
  return problem('VALIDATION_FAILED', detail, { errors: [{ pointer, message }] });
}
