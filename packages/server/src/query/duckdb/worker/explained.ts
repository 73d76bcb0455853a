const prefix =
  /^(?:\s|--[^\n\r]*[\n\r])*explain\b(?:\s+analyze\b)?(?:\s*\(\s*(?:analyze|format\s+\w+)(?:\s*,\s*(?:analyze|format\s+\w+))*\s*\))?(?=[\s(])/i;

/**
 * The statement that an EXPLAIN is about, with blanks where the words before it were, so that every place
 * in it stays where it was; any other statement as it is. Only what cannot be read in two ways is taken
 * off: a comment in `/* *\/` before EXPLAIN is not, because where such a comment ends is the parser's business.
 * To the parser a comment of one line ends at a carriage return too.
 */
export function explained(sql: string): string {
  const words = prefix.exec(sql)?.[0];
  if (words === undefined) return sql;
  return ' '.repeat(Buffer.byteLength(words)) + sql.slice(words.length);
}
