import type { Call } from './call.ts';
import { type Consumer, defaultBatchBytes } from './consumer.ts';
import type { Entry, Share } from './share.ts';

/** The shares of one consumer with records that wait, those served least lately first. */
export class Waiting {
  readonly #shares = new Set<Share>();

  get size(): number {
    return this.#shares.size;
  }

  add(share: Share): void {
    this.#shares.add(share);
  }

  delete(share: Share): void {
    this.#shares.delete(share);
  }

  /** Takes a batch for a call, and tells which shares it is of. */
  take(call: Call, consumer: Consumer, join: (share: Share) => void): Entry[] {
    const { batchSize, batchBytes = defaultBatchBytes, commit } = consumer;
    const entries: Entry[] = [];
    let room = batchBytes;
    let toSee = this.#shares.size;
    for (const share of this.#shares) {
      if (toSee === 0 || entries.length >= batchSize || room <= 0) break;
      toSee -= 1;
      if (commit !== undefined && share.owner !== undefined) continue;
      const before = entries.length;
      if (share.state === 'held') room -= share.take(call, entries, batchSize - entries.length, room);
      this.#shares.delete(share);
      if (share.state === 'held' && share.waiting > 0) this.#shares.add(share);
      if (entries.length > before) join(share);
    }
    return entries;
  }
}
