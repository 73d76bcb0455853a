import { deepestJson } from './limits.ts';
import type { Parsed } from './parse.ts';

const surrogates =
  /\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\\./gs;

/** Broken JSON text as text that every reader takes: half a surrogate pair is spelled out, not escaped. */
function mend(text: string): string {
  return text.replace(surrogates, (found) => (/^\\u.{4}$/s.test(found) ? `\\${found}` : found));
}

/**
 * A value as it stands in `_rescued`: as it was written, unless that would break those who read it. What is
 * nested too deep is a string with its text.
 */
export function rescueText(text: string, { start, end, broken, depth }: Parsed): string {
  const source = text.slice(start, end);
  const whole = broken ? mend(source) : source;
  return depth > deepestJson ? JSON.stringify(whole) : whole;
}

/** The name of a field as JSON. */
export function nameText(name: string): string {
  const text = JSON.stringify(name);
  return name.isWellFormed() ? text : mend(text);
}
