const wide =
  /\p{Emoji_Presentation}|[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60]/u;

/** How many columns of a terminal a text takes. */
export function widthOf(text: string): number {
  let width = 0;
  for (const character of text) if (!/\p{M}|\u200d/u.test(character)) width += wide.test(character) ? 2 : 1;
  return width;
}

/** A text in one line of at most so many columns. Control characters cannot reach the terminal. */
export function oneLine(text: string, most = 60): string {
  const plain = text.replace(/\s+/g, ' ').replace(/\p{Cc}/gu, '\u00b7');
  if (widthOf(plain) <= most) return plain;
  let cut = '';
  for (const character of plain) {
    if (widthOf(cut) + widthOf(character) >= most) break;
    cut += character;
  }
  return `${cut}\u2026`;
}

/** Rows under their headings, in aligned columns; those that are all numbers stand to the right. */
export function tableOf(
  headings: readonly string[],
  rows: readonly (readonly (string | null)[])[],
): string[] {
  const cells = rows.map((row) => row.map((cell) => oneLine(cell ?? 'null')));
  const right = headings.map(
    (_heading, column) =>
      rows.length > 0 &&
      rows.every((row) => row[column] === null || /^-?\d+(\.\d+)?$/.test(row[column] ?? '')),
  );
  const widths = headings.map((heading, column) =>
    Math.max(widthOf(heading), ...cells.map((row) => widthOf(row[column] ?? ''))),
  );
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => {
        const padding = ' '.repeat(Math.max(0, (widths[column] ?? 0) - widthOf(cell)));
        return right[column] === true ? padding + cell : cell + padding;
      })
      .join('  ')
      .trimEnd();
  return [
    line(headings.map((heading) => oneLine(heading))),
    line(widths.map((width) => '-'.repeat(width))),
    ...cells.map(line),
  ];
}
