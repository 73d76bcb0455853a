import type { Database } from '../database/database.ts';
import type { EventLog, PartitionAddress, PartitionBounds, TopicAddress } from '../events/events.ts';
import { chooseNode } from './assignment.ts';
import { listUnstored, storeParked } from './parked-store.ts';
import { listCursorsOfTopic, type ShareCursor } from './share-store.ts';
import type { ShareWork } from './share-work.ts';
import { storeRecord } from './stored-record.ts';

export interface TrimTopicsOptions {
  readonly database: Database;
  readonly events: EventLog;
  /** Records accepted after this time stay, whoever has passed them. */
  readonly acceptedBefore: number;
  readonly nodeId: string;
  /** The nodes alive, each of which trims its part; undefined when this one must not go on. */
  nodes(): readonly string[] | undefined;
  /** The consumers of this node. */
  works(): readonly ShareWork[];
}

interface TrimOptions {
  readonly database: Database;
  readonly events: EventLog;
  /** Records accepted after this time stay, whoever has passed them. */
  readonly acceptedBefore: number;
  /** The consumers of this node that read the topic. */
  readonly readers: ReadonlySet<string>;
  /** Consumers of this node that no longer read it, and for which what they have not passed is not kept. */
  readonly strangers: ReadonlySet<string>;
}

const parkedAtOnce = 100;

/** Trims the topics that are the part of this node. */
export async function trimTopics(options: TrimTopicsOptions): Promise<void> {
  for (const topic of await options.events.topics()) {
    const nodes = options.nodes();
    if (nodes === undefined) return;
    if (chooseNode(`${topic.organizationId}/${topic.topicName}`, nodes) !== options.nodeId) continue;
    const readers = new Set<string>();
    const strangers = new Set<string>();
    for (const { consumer, keepsUnwanted } of options.works()) {
      if (consumer.organizationId !== topic.organizationId) continue;
      if (consumer.wants(topic.topicName)) readers.add(consumer.id);
      else if (!keepsUnwanted) strangers.add(consumer.id);
    }
    await trimTopic(topic, { ...options, readers, strangers });
  }
}

/**
 * Lets go of what every consumer of a topic has passed and is old enough. A parked record that only the
 * log has is kept with its row first. So a key that fails for days does not hold back the log, and a short
 * failure, which is the usual one, costs no copy.
 */
async function trimTopic(topic: TopicAddress, options: TrimOptions): Promise<void> {
  const { database, events } = options;
  // Bounds first: a partition that is written to only from now on is not looked at.
  const bounds = await events.bounds(topic);
  const cursors = await listCursorsOfTopic(database.query, topic.organizationId, topic.topicName);
  for (const partition of bounds) await trimPartition(topic, partition, cursors, options);
}

async function trimPartition(
  topic: TopicAddress,
  { partition, trimmedThrough, last }: PartitionBounds,
  cursors: readonly ShareCursor[],
  { events, database, acceptedBefore, readers, strangers }: TrimOptions,
): Promise<void> {
  if (trimmedThrough >= last) return;
  const address: PartitionAddress = { ...topic, partition };
  const shares = cursors.filter((share) => share.partition === partition && !strangers.has(share.consumerId));
  const begun = new Set(shares.map((share) => share.consumerId));
  // A consumer that has not begun here yet begins with the first record that is there.
  if (readers.difference(begun).size > 0) return;
  const passed = Math.min(...shares.map((share) => share.cursor), last);
  if (passed <= trimmedThrough) return;
  const through = Math.min(passed, await events.offsetAt(address, acceptedBefore));
  if (through <= trimmedThrough) return;
  // Whatever is parked from now on lies past the cursor, so what is found here is all.
  for (const { consumerId } of cursors.filter((share) => share.partition === partition)) {
    await keepParked(database, events, address, consumerId, through);
  }
  await events.trim(address, through);
}

async function keepParked(
  database: Database,
  events: EventLog,
  address: PartitionAddress,
  consumerId: string,
  through: number,
): Promise<void> {
  for (let after = 0; ; ) {
    const offsets = await listUnstored(database.query, consumerId, address, { after, through }, parkedAtOnce);
    for (const offset of offsets) {
      const [record] = await events.read(address, offset - 1, { records: 1, bytes: 1 });
      if (record?.offset !== offset) continue;
      await storeParked(database.query, consumerId, address, offset, storeRecord(record));
    }
    after = offsets.at(-1) ?? after;
    if (offsets.length < parkedAtOnce) return;
  }
}
