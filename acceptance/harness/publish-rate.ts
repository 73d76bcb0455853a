import { setTimeout as pause } from 'node:timers/promises';
import { type Publisher, publishMany } from './publisher.ts';

const loops = 2;
const batchSize = 50;
const windowMilliseconds = 200;
const batch = Array.from({ length: batchSize }, (_value, n) => ({ key: `k${n}`, n, text: 'x'.repeat(100) }));

/** Publishes as fast as it can for as long as a test runs, and tells how fast that is. */
export class PublishRate {
  readonly #over = new AbortController();
  readonly #working: Promise<unknown>;
  #published = 0;
  #failure: unknown;

  constructor(publisher: Publisher, topicName: string) {
    this.#working = Promise.all(
      Array.from({ length: loops }, () => this.#publish(publisher, topicName)),
    ).catch((error) => {
      this.#failure = error;
    });
  }

  /** Messages a second in short windows, until the work is done and a least time has passed. */
  async during(leastMilliseconds: number, work: Promise<unknown> = Promise.resolve()): Promise<number[]> {
    const rates: number[] = [];
    const began = performance.now();
    let isDone = false;
    const settled = work.finally(() => {
      isDone = true;
    });
    settled.catch(() => {});
    while (!isDone || performance.now() - began < leastMilliseconds) {
      const [before, since] = [this.#published, performance.now()];
      await pause(windowMilliseconds);
      rates.push(((this.#published - before) * 1000) / (performance.now() - since));
    }
    await settled;
    this.#assertWell();
    return rates;
  }

  async stop(): Promise<void> {
    this.#over.abort();
    await this.#working;
    this.#assertWell();
  }

  #assertWell(): void {
    if (this.#failure !== undefined) throw new Error('publishing failed', { cause: this.#failure });
  }

  async #publish(publisher: Publisher, topicName: string): Promise<void> {
    while (!this.#over.signal.aborted) {
      const answer = await publishMany(publisher, topicName, batch, { messageKeyPath: '/key' });
      if (answer.status !== 200 || answer.body.accepted !== batchSize) throw new Error(answer.text);
      this.#published += batchSize;
    }
  }
}
