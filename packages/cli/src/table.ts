import { safeText } from './safe-text.ts';

const wide =
  /\p{Emoji_Presentation}|[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60]/u;

/** How many columns of a terminal a text takes. */
export function widthOf(text: string): number {
  let width = 0;
  for (const character of text) if (!/\p{M}|\u200d/u.test(character)) width += wide.test(character) ? 2 : 1;
  return width;
}

/** A text in one line of at most so many columns. Control characters cannot reach the terminal. */
export function oneLine(text: string, most = 60, squeeze = true): string {
  const plain = safeText(squeeze ? text.replace(/\s+/g, ' ') : text).replace(/[\n\t]/g, ' ');
  // Most texts are short and plain, and counting is what takes the time.
  if (plain.length * 2 <= most || widthOf(plain) <= most) return plain;
  let cut = '';
  let width = 0;
  for (const character of plain) {
    width += widthOf(character);
    if (width >= most) break;
    cut += character;
  }
  return `${cut}\u2026`;
}

/** Rows under their headings, in aligned columns; those that are all numbers stand to the right. */
export function tableOf(
  headings: readonly string[],
  rows: readonly (readonly (string | null)[])[],
  mostInCell = 60,
): string[] {
  const cells = rows.map((row) => row.map((cell) => oneLine(cell ?? 'null', mostInCell)));
  const right = headings.map(
    (_heading, column) =>
      rows.length > 0 &&
      rows.every((row) => row[column] === null || /^-?\d+(\.\d+)?$/.test(row[column] ?? '')),
  );
  const heads = headings.map((heading) => oneLine(heading));
  const widths = heads.map((heading, column) =>
    cells.reduce((most, row) => Math.max(most, widthOf(row[column] ?? '')), widthOf(heading)),
  );
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => {
        const padding = ' '.repeat(Math.max(0, (widths[column] ?? 0) - widthOf(cell)));
        return right[column] === true ? padding + cell : cell + padding;
      })
      .join('  ')
      .trimEnd();
  return [line(heads), line(widths.map((width) => '-'.repeat(width))), ...cells.map(line)];
}
