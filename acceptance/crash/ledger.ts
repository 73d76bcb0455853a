import type { Answered, Message, Request } from './publisher.ts';
import { textOf } from './publisher.ts';

/** A message as the log has it. */
export interface StoredMessage {
  readonly topicName: string;
  readonly partition: number;
  readonly offset: number;
  readonly key: string;
  readonly id: string;
  readonly acceptedAt: number;
  readonly text: string;
}

/** One request and what was answered. */
interface Attempt {
  readonly ids: readonly string[];
  readonly startedAt: number;
  readonly answered: Answered;
  /** Which of the messages had been acknowledged before: these must be called duplicates. */
  readonly knownBefore: ReadonlySet<string>;
}

/** What a writer knows about a message: the most that any answer told. */
interface Entry {
  readonly message: Message;
  readonly topicName: string;
  state: 'acknowledged' | 'unknown' | 'refused';
}

export interface LedgerCounts {
  /** Messages, not requests. */
  readonly acknowledged: number;
  /** Sent, and it was never said what became of them. */
  readonly unknown: number;
  readonly refused: number;
  /** Answers that called a message a duplicate. */
  readonly duplicates: number;
}

/** The writers' own books: everything that was sent and everything that was answered. */
export class Ledger {
  readonly #entries = new Map<string, Entry>();
  readonly #attempts: Attempt[] = [];
  #duplicates = 0;

  /** Notes an answer, or that there was none. */
  note(request: Request, startedAt: number, answered: Answered): void {
    const ids = request.messages.map(({ id }) => id);
    const knownBefore = new Set(ids.filter((id) => this.#entries.get(id)?.state === 'acknowledged'));
    if (answered.kind === 'acknowledged') {
      this.#duplicates += answered.duplicates;
      // Nothing can be learned later from requests that were answered as they must be: forget them.
      const isPlain = knownBefore.size === 0 && ids.every((id) => !this.#entries.has(id));
      if (!isPlain || answered.duplicates > 0) {
        this.#attempts.push({ ids, startedAt, answered, knownBefore });
      }
    }
    for (const message of request.messages) {
      const before = this.#entries.get(message.id)?.state ?? 'refused';
      const state = strongest(before, answered.kind);
      this.#entries.set(message.id, { message, topicName: request.topicName, state });
    }
  }

  counts(): LedgerCounts {
    const counts = { acknowledged: 0, unknown: 0, refused: 0, duplicates: this.#duplicates };
    for (const { state } of this.#entries.values()) counts[state] += 1;
    return counts;
  }

  /** The ids of what was acknowledged so far. */
  acknowledged(): string[] {
    const entries = [...this.#entries.values()].filter(({ state }) => state === 'acknowledged');
    return entries.map(({ message }) => message.id);
  }

  /** How many of the messages of unknown fate are in the log after all. */
  unknownThere(stored: readonly StoredMessage[]): number {
    return stored.filter(({ id }) => this.#entries.get(id)?.state === 'unknown').length;
  }

  /**
   * Compares the log, given in the order of partitions and offsets, with the books. Every sentence is
   * something that must not be.
   */
  violations(stored: readonly StoredMessage[]): string[] {
    return [
      ...this.#wrongCounts(stored),
      ...this.#wrongContents(stored),
      ...wrongOrder(stored, this.#entries),
      ...this.#untrueAnswers(stored),
    ];
  }

  #wrongCounts(stored: readonly StoredMessage[]): string[] {
    const counts = new Map<string, number>();
    for (const { id } of stored) counts.set(id, (counts.get(id) ?? 0) + 1);
    const wrong: string[] = [];
    for (const [id, { state }] of this.#entries) {
      const count = counts.get(id) ?? 0;
      if (state === 'acknowledged' && count === 0) wrong.push(`${id} was acknowledged and is lost`);
      if (state === 'refused' && count > 0) wrong.push(`${id} was refused and is there all the same`);
      if (count > 1) wrong.push(`${id} (${state}) is there ${count} times`);
    }
    for (const id of counts.keys()) if (!this.#entries.has(id)) wrong.push(`${id} was never sent`);
    return wrong;
  }

  #wrongContents(stored: readonly StoredMessage[]): string[] {
    const wrong: string[] = [];
    for (const { id, key, topicName, text } of stored) {
      const entry = this.#entries.get(id);
      if (entry === undefined) continue;
      if (entry.message.key !== key) wrong.push(`${id} of the key ${entry.message.key} has the key ${key}`);
      if (entry.topicName !== topicName) wrong.push(`${id} of ${entry.topicName} is in ${topicName}`);
      if (textOf(entry.message) !== text) wrong.push(`${id} has another body than was sent`);
    }
    return wrong;
  }

  /**
   * A message that an answer called a duplicate was accepted before that request was made, and one that it
   * called accepted was not.
   */
  #untrueAnswers(stored: readonly StoredMessage[]): string[] {
    const acceptedAt = new Map(stored.map((message) => [message.id, message.acceptedAt]));
    const wrong: string[] = [];
    for (const { ids, startedAt, answered, knownBefore } of this.#attempts) {
      if (answered.kind !== 'acknowledged') continue;
      const before = ids.filter(
        (id) => knownBefore.has(id) || (acceptedAt.get(id) ?? Number.POSITIVE_INFINITY) < startedAt,
      ).length;
      if (before !== answered.duplicates) {
        wrong.push(`${before} of ${ids} were there before, and the answer spoke of ${answered.duplicates}`);
      }
    }
    return wrong;
  }
}

/** An acknowledgement stands whatever comes after it; a refusal says nothing about an earlier try. */
function strongest(before: Entry['state'], now: Answered['kind']): Entry['state'] {
  if (before === 'acknowledged' || now === 'acknowledged') return 'acknowledged';
  return before === 'unknown' || now === 'unknown' ? 'unknown' : 'refused';
}

function wrongOrder(stored: readonly StoredMessage[], entries: ReadonlyMap<string, Entry>): string[] {
  const wrong: string[] = [];
  const last = new Map<string, StoredMessage & { readonly sequence: number }>();
  for (const message of stored) {
    const sequence = entries.get(message.id)?.message.sequence;
    if (sequence === undefined) continue;
    const name = `${message.topicName}/${message.key}`;
    const before = last.get(name);
    if (before !== undefined && before.partition !== message.partition) {
      wrong.push(`the key ${name} is in the partitions ${before.partition} and ${message.partition}`);
    } else if (before !== undefined && before.sequence >= sequence) {
      wrong.push(`${message.id} comes after ${before.id}`);
    }
    last.set(name, { ...message, sequence });
  }
  return wrong;
}
