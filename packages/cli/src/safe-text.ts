/**
 * What the service, a message or a task says may hold anything. None of it may steer the terminal: control
 * characters are shown as escapes, and so are those that turn the direction of what follows.
 */
const unsafe = /(?![\n\t])[\p{Cc}\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;

/** A text that a terminal only shows. Line breaks and tabs stay. */
export function safeText(text: string): string {
  return text.replace(unsafe, escapeOf);
}

/** JSON that a terminal only shows; what it says is the same. */
export function safeJson(value: unknown, indent?: number): string {
  const text = JSON.stringify(value, null, indent) ?? 'null';
  return text.replace(unsafe, (character) => `\\u${hexOf(character, 4)}`);
}

function escapeOf(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return code < 0x100 ? `\\x${hexOf(character, 2)}` : `\\u${hexOf(character, 4)}`;
}

function hexOf(character: string, digits: number): string {
  return (character.codePointAt(0) ?? 0).toString(16).padStart(digits, '0');
}
