/** One who waits for new lines of a task. */
export interface Follower {
  /** Forgets hints that came before. */
  reset(): void;
  /** Resolves at the next hint since `reset`, when the time is over, or when the signal is aborted. */
  wait(milliseconds: number, signal: AbortSignal): Promise<void>;
  leave(): void;
}

/** Those who wait for new lines, by task. */
export class Followers {
  readonly #bells = new Map<string, Set<() => void>>();

  join(key: string): Follower {
    let isRung = false;
    let wake = () => {};
    const bell = () => {
      isRung = true;
      wake();
    };
    const bells = this.#bells.get(key) ?? new Set();
    this.#bells.set(key, bells.add(bell));
    return {
      reset: () => {
        isRung = false;
      },
      wait: async (milliseconds, signal) => {
        if (isRung || signal.aborted) return;
        await new Promise<void>((resolve) => {
          const done = () => {
            clearTimeout(timer);
            signal.removeEventListener('abort', done);
            wake = () => {};
            resolve();
          };
          const timer = setTimeout(done, milliseconds);
          wake = done;
          signal.addEventListener('abort', done, { once: true });
        });
      },
      leave: () => {
        bells.delete(bell);
        if (bells.size === 0 && this.#bells.get(key) === bells) this.#bells.delete(key);
      },
    };
  }

  ring(keys: readonly string[]): void {
    for (const key of keys) for (const bell of this.#bells.get(key) ?? []) bell();
  }

  ringAll(): void {
    for (const bells of this.#bells.values()) for (const bell of bells) bell();
  }
}
