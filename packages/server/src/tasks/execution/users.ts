import { readFileSync } from 'node:fs';
import type { Random } from '../../platform/random.ts';

/**
 * User ids for processes, when the service is root: each process has one of its own, so that no process
 * can touch another, and so that all it left behind can be found. Groups are per version: they let its
 * processes read its code.
 */
export class Users {
  readonly #first: number;
  readonly #size: number;
  readonly #taken = new Set<number>();
  #next = 0;

  private constructor(first: number, size: number) {
    this.#first = first;
    this.#size = size;
  }

  /** Undefined when the service is not root, and so cannot become anyone else. */
  static open(random: Random): Users | undefined {
    if (process.getuid?.() !== 0) return undefined;
    // Far above what hosts give out; in a container with a small range, above what images give out. The
    // start is random so that two services on one host hardly meet.
    const wide = mappedIds() > 2_000_000_000;
    const first = wide ? 1_800_000_000 + random.integer(10_000) * 10_000 : 30_000;
    return new Users(first, wide ? 10_000 : 20_000);
  }

  take(): number {
    for (let tries = 0; tries < this.#size; tries += 1) {
      const id = this.#first + (this.#next % this.#size);
      this.#next += 1;
      if (this.#taken.has(id)) continue;
      this.#taken.add(id);
      return id;
    }
    throw new Error('Every user id for tasks is taken.');
  }

  release(id: number): void {
    this.#taken.delete(id);
  }
}

function mappedIds(): number {
  try {
    const lines = readFileSync('/proc/self/uid_map', 'utf8').trim().split('\n');
    return Math.max(...lines.map((line) => Number(line.trim().split(/\s+/)[2] ?? 0)));
  } catch {
    return 0;
  }
}
