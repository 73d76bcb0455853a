import {
  type EventLog,
  type EventRecord,
  type PartitionAddress,
  partitionCount,
  type TopicAddress,
} from '../events/events.ts';
import { partitionOf } from '../events/partition.ts';

/** What a follower of a topic hears. */
export type TailEvent =
  /** Everything that is accepted from here on is told. */
  | { readonly kind: 'following' }
  | { readonly kind: 'message'; readonly record: EventRecord }
  /** So many messages passed while the follower was not listening. */
  | { readonly kind: 'dropped'; readonly count: number }
  /** Nothing happened for a while. */
  | { readonly kind: 'quiet' };

export interface TailOptions {
  readonly topic: TopicAddress;
  readonly messageKey?: string | undefined;
  readonly signal: AbortSignal;
  /** After how long of silence to say so. */
  readonly quietMilliseconds?: number;
  /** How far a follower may lag behind in a partition before messages are passed over. */
  readonly bufferMessages?: number;
}

const page = { records: 256, bytes: 4 * 1024 * 1024 };

/**
 * Follows a topic from now on. The log itself is the buffer: a follower that reads slowly lags behind, and
 * one that lags too far is moved to the end and told how many messages it missed. So a follower costs no
 * memory, however slow it is.
 */
export async function* tail(log: EventLog, options: TailOptions): AsyncGenerator<TailEvent> {
  const { topic, messageKey, signal } = options;
  if (signal.aborted) return;
  const most = options.bufferMessages ?? 10_000;
  const quiet = options.quietMilliseconds ?? 15_000;
  const only = messageKey === undefined ? undefined : partitionOf(messageKey);
  const partitions =
    only === undefined ? Array.from({ length: partitionCount }, (_v, index) => index) : [only];
  const positions = new Map(partitions.map((partition) => [partition, 0]));
  const bell = new Bell();
  const silence = log.listen((address) => {
    if (isOf(topic, address) && positions.has(address.partition)) bell.ring(address.partition);
  });
  try {
    // Listening begins before the ends are read, so nothing falls between.
    for (const { partition, last } of await log.bounds(topic)) {
      if (positions.has(partition)) positions.set(partition, last);
    }
    yield { kind: 'following' };
    let spoken = performance.now();
    while (!signal.aborted) {
      for (const partition of await bell.wait(quiet - (performance.now() - spoken), signal)) {
        for await (const event of follow(log, { ...topic, partition }, positions, most, bell)) {
          if (signal.aborted) return;
          if (event.kind === 'message' && messageKey !== undefined && event.record.key !== messageKey)
            continue;
          yield event;
          spoken = performance.now();
        }
      }
      // Also when there was something that this follower did not ask for.
      if (signal.aborted || performance.now() - spoken < quiet) continue;
      yield { kind: 'quiet' };
      spoken = performance.now();
    }
  } finally {
    silence();
  }
}

/** What is new in a partition, a page of it. */
async function* follow(
  log: EventLog,
  address: PartitionAddress,
  positions: Map<number, number>,
  most: number,
  bell: Bell,
): AsyncGenerator<TailEvent> {
  const { partition } = address;
  const after = positions.get(partition) ?? 0;
  const bounds = (await log.bounds(address)).find((each) => each.partition === partition);
  if (bounds === undefined) return;
  const missed = bounds.last - after > most ? bounds.last : bounds.trimmedThrough;
  if (missed > after) {
    positions.set(partition, missed);
    yield { kind: 'dropped', count: missed - after };
  }
  const records = await log.read(address, positions.get(partition) ?? 0, page);
  for (const record of records) {
    positions.set(partition, record.offset);
    yield { kind: 'message', record };
  }
  // There may be more than one page; others get their turn in between.
  if (records.length > 0 && (positions.get(partition) ?? 0) < bounds.last) bell.ring(partition);
}

function isOf(topic: TopicAddress, address: PartitionAddress): boolean {
  return topic.topicName === address.topicName && topic.organizationId === address.organizationId;
}

/** Remembers which partitions have something new until somebody looks. */
class Bell {
  readonly #rung = new Set<number>();
  #wake: (() => void) | undefined;

  ring(partition: number): void {
    this.#rung.add(partition);
    this.#wake?.();
  }

  async wait(milliseconds: number, signal: AbortSignal): Promise<number[]> {
    if (this.#rung.size === 0 && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const done = () => {
          clearTimeout(timer);
          signal.removeEventListener('abort', done);
          this.#wake = undefined;
          resolve();
        };
        const timer = setTimeout(done, Math.max(0, milliseconds));
        this.#wake = done;
        signal.addEventListener('abort', done, { once: true });
      });
    }
    const rung = [...this.#rung];
    this.#rung.clear();
    return rung;
  }
}
