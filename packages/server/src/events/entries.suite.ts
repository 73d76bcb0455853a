import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { randomId, systemRandom } from '../platform/random.ts';
import type {
  AppendEntry,
  AppendLimits,
  EventLog,
  EventRecord,
  PartitionAddress,
  TopicAddress,
} from './events.ts';
import { partitionOf } from './partition.ts';

/** A place for a log, used by one test. It may be shared with others: organizations have ids of their own. */
export interface Site {
  /** Opens the log that is there; never while it is open. */
  open(limits?: Partial<AppendLimits>): Promise<EventLog>;
  /** Lets so much time pass that an id appended before is no duplicate any more. */
  passDeduplicationWindow(): Promise<void>;
  /** Closes what is open and removes the place. */
  remove(): Promise<void>;
}

export const newId = () => randomId(systemRandom);

export function newTopic(): TopicAddress {
  return { organizationId: newId(), topicName: 'orders' };
}

/** An entry of a topic in the partition of its key; what is not given is of no importance. */
export function entry(topic: TopicAddress, fields: Partial<AppendEntry> = {}): AppendEntry {
  const key = fields.key ?? 'key';
  return {
    organizationId: topic.organizationId,
    topicName: topic.topicName,
    partition: partitionOf(key),
    key,
    id: newId(),
    deduplicate: false,
    acceptedAt: Date.now(),
    mediaType: 'application/json',
    routes: { streams: ['orders'], lake: true, store: false },
    body: Buffer.from('{}'),
    ...fields,
  };
}

export function addressOf({ organizationId, topicName, partition }: AppendEntry): PartitionAddress {
  return { organizationId, topicName, partition };
}

/** Appends and gives the offsets; fails when something was taken for a duplicate. */
export async function offsetsOf(log: EventLog, entries: readonly AppendEntry[]): Promise<number[]> {
  const outcomes = await log.append(entries);
  assert.equal(outcomes.length, entries.length);
  return outcomes.map((outcome) => {
    assert.ok(!outcome.duplicate, 'taken for a duplicate');
    return outcome.offset;
  });
}

/** Everything in a partition after an offset, read in small pages so that their seams are tested as well. */
export async function readAll(log: EventLog, address: PartitionAddress, after = 0): Promise<EventRecord[]> {
  const all: EventRecord[] = [];
  for (;;) {
    const page = await log.read(address, all.at(-1)?.offset ?? after, { records: 97, bytes: 4_000_000 });
    if (page.length === 0) return all;
    all.push(...page);
  }
}

/** Everything in the partitions of a topic, partition by partition. */
export async function readTopic(log: EventLog, topic: TopicAddress): Promise<EventRecord[]> {
  const all: EventRecord[] = [];
  for (const { partition } of await log.bounds(topic)) {
    all.push(...(await readAll(log, { ...topic, partition })));
  }
  return all;
}

export function assertGrowing(offsets: readonly number[]): void {
  offsets.forEach((offset, index) => {
    assert.ok(Number.isSafeInteger(offset) && offset > (offsets[index - 1] ?? 0), `offsets ${offsets}`);
  });
}

/** Looks again and again, for ten seconds at most, until the check holds. */
export async function eventually(check: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const limit = performance.now() + 10_000;
  while (!(await check())) {
    assert.ok(performance.now() < limit, `waited in vain for ${what}`);
    await delay(5);
  }
}
