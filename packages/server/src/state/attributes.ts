import { type Problem, problem } from '../platform/problem.ts';

/** What an entry holds: any JSON object. */
export type Attributes = Record<string, unknown>;

/** Far past what anybody means, and far below what a serializer survives. */
const deepest = 500;

/** The attributes as the JSON they are stored as, or what is wrong with them. */
export function encodeAttributes(attributes: Attributes, mostBytes: number): string | Problem {
  const fault = findFault(attributes, deepest);
  if (fault !== undefined) {
    const pointer = `/attributes${fault.place ?? ''}`;
    const detail = `The request is not valid: ${pointer} ${fault.message}.`;
    return problem('VALIDATION_FAILED', detail, { errors: [{ pointer, message: fault.message }] });
  }
  const text = JSON.stringify(attributes);
  // No text has more than three bytes for each of its units, so most need not be counted.
  if (text.length * 3 > mostBytes && Buffer.byteLength(text) > mostBytes) {
    return problem(
      'BODY_TOO_LARGE',
      `The attributes of an entry may have at most ${mostBytes} bytes as JSON.`,
    );
  }
  return text;
}

export function decodeAttributes(text: string): Attributes {
  return JSON.parse(text);
}

interface Fault {
  /** A pointer from the attributes; undefined where it would only be long. */
  readonly place: string | undefined;
  readonly message: string;
}

/** What JSON would lose or not survive: a number that is too large comes back as null. */
function findFault(value: unknown, levels: number): Fault | undefined {
  if (typeof value === 'number') {
    return Number.isFinite(value) ? undefined : { place: '', message: 'is too large for a number' };
  }
  if (typeof value !== 'object' || value === null) return undefined;
  if (levels === 0)
    return { place: undefined, message: `must not be nested more than ${deepest} levels deep` };
  for (const name of Object.keys(value)) {
    const fault = findFault(Reflect.get(value, name), levels - 1);
    if (fault === undefined) continue;
    if (fault.place === undefined) return fault;
    const step = name.replaceAll('~', '~0').replaceAll('/', '~1');
    return { place: `/${step}${fault.place}`, message: fault.message };
  }
  return undefined;
}
