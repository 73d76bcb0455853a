import type { OutputLine } from './execution.ts';
import { keptOutput, largestOutput, longestLine } from './limits.ts';

type Stream = OutputLine['stream'];

/** Cuts what a process prints into lines, and keeps count so that nobody can flood the log. */
export class Output {
  readonly #emit: (stream: Stream, text: string) => void;
  readonly #rest = { stdout: '', stderr: '' };
  readonly #decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  #printed = 0;

  constructor(emit: (stream: Stream, text: string) => void) {
    this.#emit = emit;
  }

  /** False when the process has printed more than any may. */
  take(stream: 'stdout' | 'stderr', bytes: Uint8Array): boolean {
    const before = this.#printed;
    this.#printed += bytes.byteLength;
    if (this.#printed > largestOutput) return false;
    if (before > keptOutput) return true;
    if (this.#printed > keptOutput) {
      this.flush();
      this.#emit('system', `More than ${keptOutput} bytes were printed; the rest is not kept.`);
      return true;
    }
    const text = this.#rest[stream] + this.#decoders[stream].decode(bytes, { stream: true });
    const lines = text.split('\n');
    this.#rest[stream] = lines.pop() ?? '';
    for (const line of lines) this.#line(stream, line);
    if (this.#rest[stream].length > longestLine) this.#flush(stream);
    return true;
  }

  /** Gives out the lines that were not ended, and forgets what was printed so far. */
  begin(): void {
    this.flush();
    this.#printed = 0;
  }

  flush(): void {
    this.#flush('stdout');
    this.#flush('stderr');
  }

  #flush(stream: 'stdout' | 'stderr'): void {
    const rest = this.#rest[stream];
    this.#rest[stream] = '';
    if (rest !== '') this.#line(stream, rest);
  }

  #line(stream: 'stdout' | 'stderr', line: string): void {
    const text = line.endsWith('\r') ? line.slice(0, -1) : line;
    if (text.length <= longestLine) {
      this.#emit(stream, text);
      return;
    }
    for (let at = 0; at < text.length; at += longestLine) {
      this.#emit(stream, text.slice(at, at + longestLine));
    }
  }
}
