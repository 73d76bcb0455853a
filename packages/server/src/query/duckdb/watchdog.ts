import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { EngineLimits } from '../engine.ts';
import type { Runner } from './runners.ts';

const lookMilliseconds = 100;
/** A look at the disk costs more than one at the memory. */
const looksBetweenDiskLooks = 5;
const interruptMilliseconds = 200;
const mebibyte = 1024 * 1024;
/** What the process takes besides what DuckDB counts: Node itself, its buffers, and a second small engine. */
const overheadBytes = 512 * mebibyte;

/** Why a run was ended from outside. */
export type Ending = 'cancelled' | 'too-long' | 'too-much-memory' | 'too-much-disk';

/**
 * Watches one run from outside. DuckDB holds to its own limits as well; this is for what it does not count,
 * and for the day it is wrong.
 */
export class Watchdog {
  readonly #runner: Runner;
  readonly #limits: EngineLimits;
  readonly #signal: AbortSignal;
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #cancel = () => this.#interrupt('cancelled');
  #looks = 0;
  #looking = false;
  #stopped = false;
  ending: Ending | undefined;

  constructor(runner: Runner, limits: EngineLimits, signal: AbortSignal) {
    this.#runner = runner;
    this.#limits = limits;
    this.#signal = signal;
    this.#timers.push(
      setTimeout(() => this.#interrupt('too-long'), limits.milliseconds),
      setInterval(() => this.#look(), lookMilliseconds),
    );
    if (signal.aborted) this.#cancel();
    else signal.addEventListener('abort', this.#cancel, { once: true });
  }

  stop(): void {
    this.#stopped = true;
    this.#signal.removeEventListener('abort', this.#cancel);
    for (const timer of this.#timers) clearTimeout(timer);
  }

  /** Asks the engine to stop, and ends it when it does not. */
  #interrupt(ending: Ending): void {
    if (this.#stopped || this.ending !== undefined) return;
    this.ending = ending;
    this.#runner.child.tell({ kind: 'interrupt' });
    this.#timers.push(setTimeout(() => this.#runner.child.kill(), interruptMilliseconds));
  }

  #end(ending: Ending): void {
    if (this.#stopped || this.ending === 'cancelled') return;
    this.ending = ending;
    this.#runner.child.kill();
  }

  #look(): void {
    if (this.#looking || this.#stopped) return;
    this.#looking = true;
    this.#looks += 1;
    const looked = this.#lookAtMemory().then(() =>
      this.#looks % looksBetweenDiskLooks === 0 ? this.#lookAtDisk() : undefined,
    );
    // A file that goes while it is looked at is no fault.
    looked
      .catch(() => {})
      .finally(() => {
        this.#looking = false;
      });
  }

  async #lookAtMemory(): Promise<void> {
    const most = this.#limits.memoryBytes * 1.5 + overheadBytes;
    if ((await this.#runner.child.residentBytes()) > most) this.#end('too-much-memory');
  }

  async #lookAtDisk(): Promise<void> {
    const most = this.#limits.temporaryBytes + 4 * this.#limits.resultBytes + 64 * mebibyte;
    if ((await bytesBelow(this.#runner.scratch)) > most) this.#end('too-much-disk');
  }
}

async function bytesBelow(folder: string): Promise<number> {
  let bytes = 0;
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) bytes += (await stat(join(entry.parentPath, entry.name))).size;
  }
  return bytes;
}
