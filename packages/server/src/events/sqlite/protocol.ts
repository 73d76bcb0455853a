import type { PartitionAddress, PartitionBounds, ReadLimits, TopicAddress } from '../events.ts';
import type { EncodedBatch } from './batch.ts';
import type { Failure } from './failure.ts';

/**
 * What passes between the main thread and the two threads of the log. The writer answers appends in the
 * order they came and trims in the order they came; the reader answers everything in order.
 */
export interface OpenWriter {
  readonly kind: 'open';
  readonly path: string;
  readonly windowMilliseconds: number;
  readonly now: number;
}

export type ToWriter =
  | OpenWriter
  | { readonly kind: 'append'; readonly batch: EncodedBatch; readonly now: number }
  | { readonly kind: 'trim'; readonly address: PartitionAddress; readonly through: number }
  /** Tells the time, so that what is out of date can go also when nothing is appended. */
  | { readonly kind: 'tick'; readonly now: number }
  | { readonly kind: 'close' };

export type FromWriter =
  | Opening
  | Appended
  | AppendFailed
  | Trimmed
  /** The disk failed under work that nobody waits for. */
  | { readonly kind: 'fatal'; readonly failure: Failure };

export interface Appended {
  readonly kind: 'appended';
  /** The offset of each entry, 0 for a duplicate. */
  readonly offsets: Float64Array;
  /** For each topic of the batch, a bit for each partition that was appended to. */
  readonly partitions: readonly number[];
  /** The memory of the batch, to be used again. */
  readonly buffer: ArrayBuffer;
}

export interface AppendFailed {
  readonly kind: 'append-failed';
  readonly failure: Failure;
}

export interface Trimmed {
  readonly kind: 'trimmed';
  readonly failure?: Failure;
}

export type Opening = { readonly kind: 'opened' } | { readonly kind: 'refused'; readonly message: string };

export type Question =
  | {
      readonly kind: 'read';
      readonly address: PartitionAddress;
      readonly after: number;
      readonly limits: ReadLimits;
    }
  | { readonly kind: 'bounds'; readonly topic: TopicAddress }
  | { readonly kind: 'topics'; readonly organizationId: string | undefined }
  | { readonly kind: 'offset-at'; readonly address: PartitionAddress; readonly acceptedAt: number }
  | { readonly kind: 'check' };

export type ToReader =
  | { readonly kind: 'open'; readonly path: string }
  | { readonly kind: 'close' }
  | Question;

/** Each answer has the kind of its question. */
export type Answer =
  | ({ readonly kind: 'read' } & EncodedRecords)
  | { readonly kind: 'bounds'; readonly bounds: readonly PartitionBounds[] }
  | { readonly kind: 'topics'; readonly topics: readonly TopicAddress[] }
  | { readonly kind: 'offset-at'; readonly offset: number }
  | { readonly kind: 'check' };

export type FromReader = Opening | Answer | { readonly kind: 'failed'; readonly failure: Failure };

/** Neighbouring records, as they lie on disk. */
export interface EncodedRecords {
  readonly firstOffset: number;
  readonly count: number;
  readonly attributes: readonly string[];
  readonly bytes: Uint8Array<ArrayBuffer>;
}
