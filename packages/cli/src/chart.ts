import { oneLine, widthOf } from './table.ts';

const eighths = ['', '\u258f', '\u258e', '\u258d', '\u258c', '\u258b', '\u258a', '\u2589'];
const mostBars = 40;
const lineHeight = 10;

/** A chart of the last column that is all numbers over the first one: bars, or a line when it is over time. */
export function chartOf(
  names: readonly string[],
  rows: readonly (readonly (string | null)[])[],
  width: number,
): string[] {
  const column = names.findLastIndex(
    (_name, index) => index > 0 && rows.every((row) => row[index] === null || isNumber(row[index] ?? '')),
  );
  if (column < 0 || rows.length === 0) return ['There is no column of numbers to draw.'];
  const points = rows.map((row) => ({ label: row[0] ?? 'null', value: Number(row[column] ?? 0) }));
  const overTime = points.length > 2 && points.every(({ label }) => /^\d{4}-\d{2}-\d{2}/.test(label));
  return overTime ? lineChart(points, width) : barChart(points.slice(0, mostBars), width, points.length);
}

function isNumber(text: string): boolean {
  return text.trim() !== '' && Number.isFinite(Number(text));
}

interface Point {
  readonly label: string;
  readonly value: number;
}

function barChart(points: readonly Point[], width: number, all: number): string[] {
  const labels = points.map(({ label }) => oneLine(label, 28));
  const labelWidth = Math.max(...labels.map(widthOf));
  const figures = points.map(({ value }) => value.toLocaleString('en-US'));
  const figureWidth = Math.max(...figures.map((figure) => figure.length));
  const room = Math.max(10, width - labelWidth - figureWidth - 4);
  const most = Math.max(...points.map(({ value }) => value), 0);
  const lines = points.map(({ value }, index) => {
    const units = most === 0 ? 0 : Math.round((Math.max(value, 0) / most) * room * 8);
    const bar = '\u2588'.repeat(Math.floor(units / 8)) + (eighths[units % 8] ?? '');
    const label = labels[index] ?? '';
    return `${label}${' '.repeat(labelWidth - widthOf(label))}  ${(figures[index] ?? '').padStart(figureWidth)}  ${bar}`;
  });
  return all > points.length ? [...lines, `and ${all - points.length} more rows`] : lines;
}

function lineChart(points: readonly Point[], width: number): string[] {
  const values = points.map(({ value }) => value);
  const most = Math.max(...values);
  const least = Math.min(...values, 0);
  const top = most.toLocaleString('en-US');
  const bottom = least.toLocaleString('en-US');
  const labelWidth = Math.max(top.length, bottom.length);
  const columns = Math.min(Math.max(20, width - labelWidth - 3), Math.max(points.length, 20));
  const heights = Array.from({ length: columns }, (_value, index) => {
    const value = values[Math.round((index * (values.length - 1)) / (columns - 1))] ?? least;
    return most === least ? 0 : Math.round(((value - least) / (most - least)) * (lineHeight - 1));
  });
  const lines = Array.from({ length: lineHeight }, (_value, index) => {
    const height = lineHeight - 1 - index;
    const label = index === 0 ? top : height === 0 ? bottom : '';
    const drawn = heights.map((at) => (at === height ? '\u25cf' : at > height ? '\u2502' : ' ')).join('');
    return `${label.padStart(labelWidth)} \u2524${drawn.trimEnd()}`;
  });
  const first = points[0]?.label ?? '';
  const last = points.at(-1)?.label ?? '';
  const gap = Math.max(1, columns - first.length - last.length);
  return [...lines, `${' '.repeat(labelWidth + 2)}${first}${' '.repeat(gap)}${last}`];
}
