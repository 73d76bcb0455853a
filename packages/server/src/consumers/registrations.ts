import type { Database } from '../database/database.ts';
import type { Log } from '../platform/log.ts';
import type { Allotment } from './allotment.ts';
import type { ShareWork } from './share-work.ts';

/** A consumer of this node, whatever kind it is of. */
export interface Registered {
  readonly work: ShareWork;
  readonly allotment: Allotment;
}

export interface RegistrationsOptions {
  readonly database: Database;
  readonly log: Log;
  readonly drainMilliseconds: number;
  /** Other consumers are registered than before. */
  onChange(consumerIds: ReadonlySet<string>): void;
}

/** Several shares are mostly given up at once; others are told of them together. */
const togetherMilliseconds = 5;

/** The consumers of this node. */
export class Registrations {
  readonly #options: RegistrationsOptions;
  readonly #registered = new Map<string, Registered>();
  /** Consumers that were removed and still have something in hand. */
  readonly #closing = new Map<string, Promise<void>>();
  readonly #released = new Set<string>();

  constructor(options: RegistrationsOptions) {
    this.#options = options;
  }

  [Symbol.iterator](): Iterator<Registered> {
    return this.#registered.values();
  }

  get(consumerId: string): Registered | undefined {
    return this.#registered.get(consumerId);
  }

  works(): ShareWork[] {
    return [...this.#registered.values()].map(({ work }) => work);
  }

  /** Adds a consumer and begins with it once one of the same id that was removed has ended. */
  add(registered: Registered, begin: () => Promise<void>): void {
    const { id } = registered.work.consumer;
    if (this.#registered.has(id)) throw new Error(`The consumer ${id} is registered already`);
    this.#registered.set(id, registered);
    // Two runs of one consumer on a node could not tell their calls apart.
    void this.ended(id).then(async () => {
      if (this.#registered.get(id) !== registered) return;
      this.#changed();
      await begin();
    });
  }

  async remove(registered: Registered): Promise<void> {
    const { id } = registered.work.consumer;
    if (this.#registered.get(id) === registered) {
      this.#registered.delete(id);
      this.#closing.set(
        id,
        this.#end(registered).finally(() => this.#closing.delete(id)),
      );
      this.#changed();
    }
    await this.ended(id);
  }

  isEnding(consumerId: string): boolean {
    return this.#closing.has(consumerId);
  }

  /** Resolves when nothing is in hand of a consumer that was removed. */
  async ended(consumerId: string): Promise<void> {
    await this.#closing.get(consumerId);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#registered.values()].map((registered) => this.#end(registered)));
    await Promise.all(this.#closing.values());
  }

  /** Tells the others once that shares of a consumer are free, however many were given up at once. */
  announceReleased(consumerId: string): void {
    if (this.#released.has(consumerId)) return;
    this.#released.add(consumerId);
    setTimeout(() => {
      this.#released.delete(consumerId);
      this.#options.database.announce('consumers.released', consumerId).catch((error: unknown) => {
        this.#options.log.warn(
          { event: 'consumers.announce-failed', error },
          'other nodes will see it later',
        );
      });
    }, togetherMilliseconds).unref();
  }

  #changed(): void {
    this.#options.onChange(new Set(this.#registered.keys()));
  }

  async #end({ work, allotment }: Registered): Promise<void> {
    await allotment.close();
    await work.close(this.#options.drainMilliseconds);
  }
}
