import type { Call } from './call.ts';
import type { Share } from './share.ts';

/** The calls of one consumer that are under way on this node. */
export class Calls {
  readonly #calls = new Set<Call>();
  #whenIdle: (() => void)[] = [];

  get size(): number {
    return this.#calls.size;
  }

  add(call: Call): void {
    this.#calls.add(call);
  }

  delete(call: Call): void {
    this.#calls.delete(call);
    if (this.#calls.size === 0) for (const resolve of this.#whenIdle.splice(0)) resolve();
  }

  abortAll(): void {
    for (const call of this.#calls) call.controller.abort();
  }

  /** Aborts the calls that have records of a share. */
  abortOf(share: Share): void {
    for (const call of this.#calls) if (call.shares.has(share)) call.controller.abort();
  }

  /** Whether a call still has records of a share that was lost. */
  hasLeftover(shareId: string): boolean {
    for (const call of this.#calls) {
      for (const share of call.shares) if (share.id === shareId && share.state === 'lost') return true;
    }
    return false;
  }

  /** Resolves when no call is under way. */
  async idle(): Promise<void> {
    if (this.#calls.size > 0) await new Promise<void>((resolve) => this.#whenIdle.push(resolve));
  }
}
