/**
 * The event log port.
 *
 * Each topic of each organization is a log of 16 partitions. A message belongs to the partition of its key
 * and is one record, stamped with its routes as they were when it was accepted. The log knows no consumer:
 * whoever reads keeps its own cursor.
 *
 * Offsets are positive integers that grow within a partition. They need not be dense, and those of two
 * partitions or topics have nothing to do with each other, so that an engine whose sequence numbers run
 * over many partitions can use them as they are.
 */
export interface EventLog {
  /**
   * Appends the entries in the order given and resolves when all of them are durable. An entry whose id was
   * appended to its topic within the deduplication window is a duplicate and is not appended again, also
   * when its twin is in the same call. Calls made one after the other are appended in that order, also when
   * nobody waits in between.
   *
   * Rejects with `EventLogFullError` when more is waiting than may, and with `EventLogUnavailableError`
   * when the engine cannot write now; then none of the entries was accepted. After a failed sync nothing is
   * acknowledged any more: the process ends.
   */
  append(entries: readonly AppendEntry[]): Promise<AppendOutcome[]>;
  /** The records of a partition after an offset, oldest first, as many as fit. At least one if there is any. */
  read(address: PartitionAddress, after: number, limits: ReadLimits): Promise<EventRecord[]>;
  /**
   * The same as `read`, for who passes many records on without looking at each: making an object and texts of
   * every record costs more than all else. An engine that cannot give them so has no such method.
   */
  readPacked?(address: PartitionAddress, after: number, limits: ReadLimits): Promise<PackedRecords>;
  /** Where the partitions of a topic begin and end; a partition that was never written to is left out. */
  bounds(topic: TopicAddress): Promise<PartitionBounds[]>;
  /** The topics that have, or had, records, of one organization or of all. */
  topics(organizationId?: string): Promise<TopicAddress[]>;
  /** Lets go of the records of a partition up to and including an offset. Offsets go on as if nothing was. */
  trim(address: PartitionAddress, through: number): Promise<void>;
  /**
   * The last record accepted at or before a time, as an offset to trim through; 0 when there is none. It
   * may be earlier than the very last one, never later.
   */
  offsetAt(address: PartitionAddress, acceptedAt: number): Promise<number>;
  /** Is told of every partition that records were appended to, by any node, soon after they are durable. */
  listen(hear: (address: PartitionAddress) => void): () => void;
  check(): Promise<void>;
  /** Refuses new work, finishes what is under way, and lets go of the engine. */
  close(): Promise<void>;
}

export const partitionCount = 16;

export interface TopicAddress {
  readonly organizationId: string;
  readonly topicName: string;
}

export interface PartitionAddress extends TopicAddress {
  /** From 0 to 15. */
  readonly partition: number;
}

/** Where a message goes, decided when it is accepted. */
export interface Routes {
  readonly streams: readonly string[];
  readonly lake: boolean;
  readonly store: boolean;
}

export interface AppendEntry extends PartitionAddress {
  /** Well-formed Unicode, as is the id: what is not could come back changed. */
  readonly key: string;
  readonly id: string;
  /** Whether the publisher chose the id, so that a second one of the same id is a duplicate. */
  readonly deduplicate: boolean;
  /** Milliseconds since the epoch. */
  readonly acceptedAt: number;
  readonly mediaType: string;
  readonly routes: Routes;
  readonly body: Uint8Array;
}

/** How much may wait to be durable; more is refused at once. */
export interface AppendLimits {
  readonly entries: number;
  readonly bytes: number;
}

export type AppendOutcome =
  | { readonly duplicate: true }
  | { readonly duplicate: false; readonly offset: number };

export interface EventRecord {
  readonly offset: number;
  readonly key: string;
  readonly id: string;
  readonly acceptedAt: number;
  readonly mediaType: string;
  readonly routes: Routes;
  readonly body: Uint8Array;
}

/** Records as they lie in memory. All lists are as long as there are records, or a multiple of that. */
export interface PackedRecords {
  readonly count: number;
  /** The offset of the last one; undefined when there is none. */
  readonly last: number | undefined;
  /** Has the keys and ids, in UTF-8, and the bodies. */
  readonly bytes: Buffer;
  /** For each record where its key begins, its id, its body, and where the body ends. */
  readonly places: Uint32Array;
  readonly acceptedAt: Float64Array;
  /** For each record which of the routes are its own. */
  readonly routeOf: Uint16Array;
  readonly routes: readonly Routes[];
  /**
   * Gives the memory of the bytes back at once. It need not be called; who reads much should, because memory that
   * waits to be collected makes the collector busy. The bytes are gone afterwards.
   */
  release(): void;
}

/** How many places each record has. */
export const placesOfRecord = 4;

export interface ReadLimits {
  readonly records: number;
  /** Bytes of bodies; passed by at most one record. */
  readonly bytes: number;
}

export interface PartitionBounds {
  readonly partition: number;
  /** The offset before the first record that is still there. */
  readonly trimmedThrough: number;
  /** The offset of the last record ever appended. */
  readonly last: number;
}

/** More is waiting for the log than may. Nothing was accepted; worth trying again in a moment. */
export class EventLogFullError extends Error {
  override readonly name = 'EventLogFullError';
}

/** The engine cannot write now: it is down, or its disk is full. Nothing was accepted. */
export class EventLogUnavailableError extends Error {
  override readonly name = 'EventLogUnavailableError';
}
