import type { Consumer, Delivery, Failure } from './consumer.ts';
import type { Entry, Share } from './share.ts';
import { storedError } from './stored-record.ts';

/** One call of a consumer. */
export interface Call {
  readonly shares: Set<Share>;
  readonly controller: AbortController;
  /** The parked key that it tries again. */
  readonly retried: { readonly share: Share; readonly key: string } | undefined;
}

export function newCall(retried?: { readonly share: Share; readonly key: string }): Call {
  return { shares: new Set(), controller: new AbortController(), retried };
}

/** Calls the consumer and answers which of the entries failed. */
export async function callConsumer(
  consumer: Consumer,
  entries: readonly Entry[],
  signal: AbortSignal,
): Promise<ReadonlyMap<number, Failure>> {
  const batch = deliveriesOf(entries);
  try {
    return byIndex(await consumer.handle(batch, signal), batch.length);
  } catch (error) {
    return failAll(entries.length, error);
  }
}

export function failAll(count: number, error: unknown): ReadonlyMap<number, Failure> {
  const text = storedError(error);
  return new Map(Array.from({ length: count }, (_, index) => [index, { index, error: text }]));
}

export function deliveriesOf(entries: readonly Entry[]): Delivery[] {
  const deliveries: Delivery[] = [];
  for (const { delivery } of entries) if (delivery !== undefined) deliveries.push(delivery);
  return deliveries;
}

const none: ReadonlyMap<number, Failure> = new Map();

function byIndex(failures: readonly Failure[], count: number): ReadonlyMap<number, Failure> {
  if (failures.length === 0) return none;
  const wrong = failures.find(({ index }) => !Number.isInteger(index) || index < 0 || index >= count);
  if (wrong !== undefined)
    throw new RangeError(`A failure names record ${wrong.index} of a batch of ${count}`);
  return new Map(failures.map((failure) => [failure.index, failure]));
}
