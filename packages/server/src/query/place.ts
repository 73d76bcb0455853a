/** A message with the line and column at which a statement is wrong, where that is known. */
export function placed(sql: string, message: string, position: number | undefined): string {
  if (position === undefined) return message;
  // The engine counts bytes, people count characters.
  const before = Buffer.from(sql).subarray(0, position).toString();
  const lines = before.split('\n');
  const column = [...(lines.at(-1) ?? '')].length + 1;
  const at = `(line ${lines.length}, column ${column})`;
  const [first = '', ...rest] = message.trim().split('\n');
  return [`${first.replace(/[.!]$/, '')} ${at}`, ...rest].join('\n');
}
