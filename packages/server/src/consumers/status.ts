import type { Database } from '../database/database.ts';
import type { EventLog, PartitionAddress } from '../events/events.ts';
import type { Clock } from '../platform/clock.ts';
import type { ConsumerStatus } from './consumer.ts';
import { type Counters, type KindFigures, kindOf } from './figures.ts';
import { countParked } from './parked-store.ts';
import type { Registered } from './registrations.ts';
import { listCursorsOfConsumer } from './share-store.ts';
import type { ShareWork } from './share-work.ts';

interface Sources {
  readonly database: Database;
  readonly events: EventLog;
  readonly clock: Clock;
}

/** A consumer as all nodes together see it, from what is written. */
export async function consumerStatus(work: ShareWork, sources: Sources): Promise<ConsumerStatus> {
  const { consumer, inFlight } = work;
  const { database, events } = sources;
  const cursors = new Map<string, Map<number, number>>();
  for (const { topicName, partition, cursor } of await listCursorsOfConsumer(database.query, consumer.id)) {
    const ofTopic = cursors.get(topicName) ?? new Map<number, number>();
    cursors.set(topicName, ofTopic.set(partition, cursor));
  }
  let lag = 0;
  let oldest = Number.POSITIVE_INFINITY;
  for (const topic of await events.topics(consumer.organizationId)) {
    if (!consumer.wants(topic.topicName)) continue;
    for (const { partition, trimmedThrough, last } of await events.bounds(topic)) {
      const cursor = Math.max(cursors.get(topic.topicName)?.get(partition) ?? 0, trimmedThrough);
      if (cursor >= last) continue;
      lag += last - cursor;
      oldest = Math.min(oldest, await acceptedAtAfter(events, { ...topic, partition }, cursor));
    }
  }
  const parked = await countParked(database.query, consumer.id);
  return { lag, oldestAgeMilliseconds: age(oldest, sources.clock), parked, inFlight };
}

/**
 * The figures of this node by kind of consumer. What is idle is known to lag nothing and is not asked for.
 * A consumer that has not got its shares yet lags by what is written down, or a start would look like rest.
 */
export async function kindFigures(
  consumers: Iterable<Registered>,
  counters: Counters,
  sources: Sources,
): Promise<KindFigures[]> {
  const { events, clock } = sources;
  const kinds = new Map<string, { -readonly [Name in keyof KindFigures]: KindFigures[Name] }>();
  for (const [kind, counts] of counters) {
    kinds.set(kind, {
      kind,
      ...counts,
      consumers: 0,
      shares: 0,
      lag: 0,
      oldestAgeMilliseconds: 0,
      parkedKeys: 0,
      inFlight: 0,
    });
  }
  for (const { work, allotment } of consumers) {
    const figures = kinds.get(kindOf(work.consumer.id));
    if (figures === undefined) continue;
    figures.consumers += 1;
    figures.inFlight += work.inFlight;
    if (!allotment.isSettled) {
      const { lag, oldestAgeMilliseconds } = await consumerStatus(work, sources);
      figures.lag += lag;
      figures.oldestAgeMilliseconds = Math.max(figures.oldestAgeMilliseconds, oldestAgeMilliseconds);
      continue;
    }
    const lasts = new Map<string, Map<number, number>>();
    for (const share of work.shares.values()) {
      figures.shares += 1;
      figures.parkedKeys += share.parkedKeys;
      if (share.isIdle()) continue;
      const cursor = share.cursor();
      const { topicName, partition } = share.address;
      const ofTopic =
        lasts.get(topicName) ??
        new Map((await events.bounds(share.address)).map((bounds) => [bounds.partition, bounds.last]));
      lasts.set(topicName, ofTopic);
      const lag = (ofTopic.get(partition) ?? 0) - cursor;
      if (lag <= 0) continue;
      figures.lag += lag;
      const oldest = share.oldestAcceptedAt() ?? (await acceptedAtAfter(events, share.address, cursor));
      figures.oldestAgeMilliseconds = Math.max(figures.oldestAgeMilliseconds, age(oldest, clock));
    }
  }
  return [...kinds.values()];
}

async function acceptedAtAfter(events: EventLog, address: PartitionAddress, cursor: number): Promise<number> {
  const [record] = await events.read(address, cursor, { records: 1, bytes: 1 });
  return record?.acceptedAt ?? Number.POSITIVE_INFINITY;
}

function age(acceptedAt: number, clock: Clock): number {
  return acceptedAt === Number.POSITIVE_INFINITY ? 0 : Math.max(0, clock.now() - acceptedAt);
}
