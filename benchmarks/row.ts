/** One line of the report: what was measured, the figure, what it is compared with, and the bar it is held to. */
export interface Row {
  readonly what: string;
  readonly figure: string;
  readonly bare?: string;
  readonly ratio?: number;
  readonly bar: string;
  readonly reached: boolean;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2;
}

export function printRows(rows: readonly Row[]): void {
  const lines = [
    ['measured', 'figure', 'bare', 'ratio', 'bar', ''],
    ...rows.map((row) => [
      row.what,
      row.figure,
      row.bare ?? '',
      row.ratio === undefined ? '' : `${Math.round(row.ratio * 100)} %`,
      row.bar,
      row.reached ? 'reached' : 'MISSED',
    ]),
  ];
  const widths = lines[0]?.map((_cell, column) =>
    Math.max(...lines.map((line) => (line[column] ?? '').length)),
  );
  for (const line of lines) {
    process.stdout.write(`${line.map((cell, column) => cell.padEnd(widths?.[column] ?? 0)).join('  ')}\n`);
  }
}
