import { setTimeout as pause } from 'node:timers/promises';
import type { Ledger } from './ledger.ts';
import { type Account, type Form, type Message, publish, type Request } from './publisher.ts';
import type { SeededRandom } from './random.ts';

export interface WriterOptions {
  readonly name: string;
  readonly topicName: string;
  readonly keys: number;
  readonly random: SeededRandom;
  readonly ledger: Ledger;
  /** How many characters a message is filled up with at most; most have far fewer. */
  readonly mostFilling?: number;
}

export interface WritingUntil {
  /** Asked before each request. */
  isOver(): boolean;
  /** Called in the same turn in which an answer was read. */
  onAcknowledged?(): void;
}

const forms: readonly Form[] = ['lines', 'array', 'zipped lines'];
const pauseAfterRefusalMilliseconds = 20;

/**
 * Publishes to keys that are its own, one request after the other, so that the order of each key is known.
 *
 * When a connection breaks it does not know what became of its request. Half of the time it sends the same
 * one again when it writes next, and half of the time it gives it up and goes on.
 */
export class Writer {
  readonly #options: WriterOptions;
  readonly #sequences: number[];
  #count = 0;
  /** To be sent again. */
  #pending: Request | undefined;
  #lastAcknowledged: Request | undefined;

  constructor(options: WriterOptions) {
    this.#options = options;
    this.#sequences = Array.from({ length: options.keys }, () => 0);
  }

  /** Whether there is something that it has not given up and has no answer for. */
  get isPending(): boolean {
    return this.#pending !== undefined;
  }

  /** Publishes until told to stop or the connection breaks. */
  async write(account: Account, until: WritingUntil): Promise<void> {
    while (!until.isOver()) {
      if (!(await this.writeOnce(account, until))) return;
    }
  }

  /** Makes one request; false when its fate is unknown. */
  async writeOnce(account: Account, until: Pick<WritingUntil, 'onAcknowledged'> = {}): Promise<boolean> {
    const { random, ledger } = this.#options;
    const request = this.#pending ?? this.#next();
    const startedAt = Date.now();
    const answered = await publish(account, request);
    ledger.note(request, startedAt, answered);
    if (answered.kind === 'unknown') {
      this.#pending = random.chance(0.5) ? request : undefined;
      return false;
    }
    if (answered.kind === 'acknowledged') {
      until.onAcknowledged?.();
      this.#pending = undefined;
      this.#lastAcknowledged = request;
      return true;
    }
    if (answered.answer.status !== 503) throw new Error(`refused: ${answered.answer.text}`);
    // Nothing of it was accepted, so giving it up leaves a gap and no doubt.
    this.#pending = random.chance(0.5) ? request : undefined;
    await pause(pauseAfterRefusalMilliseconds);
    return true;
  }

  #next(): Request {
    const { random, topicName } = this.#options;
    // Now and then somebody repeats what was acknowledged already, as after a lost answer.
    if (this.#lastAcknowledged !== undefined && random.chance(0.05)) return this.#lastAcknowledged;
    if (random.chance(0.6)) return { form: 'message', topicName, messages: [this.#message()] };
    const count = random.chance(0.1) ? random.between(100, 400) : random.between(1, 20);
    const form = forms[random.between(0, forms.length - 1)] ?? 'lines';
    return { form, topicName, messages: Array.from({ length: count }, () => this.#message(count > 20)) };
  }

  #message(small = false): Message {
    const { name, random, mostFilling = 60_000 } = this.#options;
    const number = random.between(0, this.#sequences.length - 1);
    const sequence = (this.#sequences[number] ?? 0) + 1;
    this.#sequences[number] = sequence;
    this.#count += 1;
    const large = !small && random.chance(0.03);
    const filling = random.between(0, large ? mostFilling : Math.min(300, mostFilling));
    return { id: `${name}-${this.#count}`, key: `${name}-key-${number}`, sequence, filling };
  }
}
