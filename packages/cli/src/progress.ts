import type { Output } from './output.ts';
import { oneLine } from './table.ts';

/** Shows how far something is, on a terminal only. */
export interface ProgressBar {
  /** What is done now, of the whole if that is known. */
  update(done: number, total?: number): void;
  /** Takes the bar away and leaves a line in its place. */
  end(text?: string): void;
}

const barWidth = 24;
const everyMilliseconds = 80;

export function progressBar(
  output: Output,
  label: string,
  show: (amount: number) => string = (amount) => Math.round(amount).toLocaleString('en-US'),
): ProgressBar {
  const started = performance.now();
  let shown = Number.NEGATIVE_INFINITY;
  const draw = (done: number, total?: number) => {
    const seconds = Math.max(0.001, (performance.now() - started) / 1000);
    const rate = `${show(Math.round(done / seconds))}/s`;
    const share = total === undefined || total === 0 ? undefined : Math.min(1, done / total);
    const filled = Math.round((share ?? 0) * barWidth);
    const bar =
      share === undefined
        ? ''
        : `${'\u2588'.repeat(filled)}${'\u2591'.repeat(barWidth - filled)} ${String(Math.floor(share * 100)).padStart(3)} %  `;
    // A line that wraps could not be taken away again.
    output.draw(oneLine(`${label}  ${bar}${show(done)}  ${rate}`, (process.stderr.columns || 80) - 1, false));
  };
  return {
    update(done, total) {
      if (!output.interactive || performance.now() - shown < everyMilliseconds) return;
      shown = performance.now();
      draw(done, total);
    },
    end(text) {
      output.erase();
      shown = Number.NEGATIVE_INFINITY;
      if (text !== undefined) output.note(text);
    },
  };
}

export function bytesText(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let amount = bytes;
  let unit = 0;
  while (amount >= 1000 && unit < units.length - 1) {
    amount /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? amount : amount.toFixed(1)} ${units[unit]}`;
}
