/** How many may wait for one name. */
const mostWaiting = 64;

/** Work on one thing at a time: what is asked for under a name is done in the order it was asked for. */
export class Turns {
  readonly #last = new Map<string, { end: Promise<void>; waiting: number }>();

  /** Whether so many wait for the name that no more should. */
  isCrowded(name: string): boolean {
    return (this.#last.get(name)?.waiting ?? 0) >= mostWaiting;
  }

  /** Does the work when everything that was asked for before has ended, well or not. */
  take<T>(name: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(name);
    const result = before === undefined ? work() : before.end.then(work);
    const turn = {
      waiting: (before?.waiting ?? 0) + 1,
      end: result.then(
        () => this.#leave(name),
        () => this.#leave(name),
      ),
    };
    this.#last.set(name, turn);
    return result;
  }

  /** Resolves when nothing is under way. */
  async idle(): Promise<void> {
    while (this.#last.size > 0) await Promise.all([...this.#last.values()].map(({ end }) => end));
  }

  #leave(name: string): void {
    const last = this.#last.get(name);
    if (last === undefined) return;
    last.waiting -= 1;
    if (last.waiting === 0) this.#last.delete(name);
  }
}
