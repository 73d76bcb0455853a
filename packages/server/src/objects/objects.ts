import type { Readable } from 'node:stream';

/**
 * The object store port: lake files, uploaded code, query results.
 *
 * Two adapters stand behind it, a directory and S3, and both pass the same suite. Keys are checked by
 * `parseKey` in key.ts; a store given anything else throws `InvalidKeyError` before it does anything.
 *
 * An object appears whole or not at all: a reader never sees a part of a write, and a write that fails
 * or is cut off leaves nothing behind. When `put` or `create` resolves, the object is durable.
 *
 * A key should not be a directory of another key (`a` beside `a/b`). AWS S3 holds both; directories, and
 * S3 servers that keep objects as plain files, cannot, and refuse the second one with `KeyConflictError`
 * while the first stays as it was. Files keep their plain names so that DuckDB and people can read them
 * in place, which is worth more than a pair that no code of ours makes.
 */
export interface ObjectStore {
  /** Stores the object, replacing one of the same key. A `contentLength` that proves wrong is a fault. */
  put(key: string, body: ObjectContent, options?: PutOptions): Promise<StoredObject>;
  /**
   * Stores the object only where there is none of that key, and only when the body has exactly
   * `contentLength` bytes. Of two at the same time one wins. This is what an upload by a stranger uses.
   */
  create(key: string, body: ObjectContent, options: CreateOptions): Promise<CreateOutcome>;
  /**
   * Opens the object, or the given part of it; undefined when there is no such object. The body must be
   * read or destroyed. Throws `RangeNotSatisfiableError` for a range that begins past the last byte.
   */
  get(key: string, range?: ByteRange): Promise<OpenObject | undefined>;
  head(key: string): Promise<ObjectSummary | undefined>;
  /** Removes the object. There being none is success. */
  delete(key: string): Promise<void>;
  /**
   * One page of the objects whose keys begin with the prefix, in byte order of their keys. `next`, where
   * there may be more, is given as `after` for the following page. A page does not walk what is before it.
   */
  list(prefix: string, options: ListOptions): Promise<ObjectPage>;
  /** A URL that anyone may GET, with Range, until it expires: this key and this method only. */
  signedGet(key: string, options: { expiresAt: number }): Promise<string>;
  /** A URL that anyone may PUT exactly `contentLength` bytes to, once, until it expires. */
  signedPut(key: string, options: { expiresAt: number; contentLength: number }): Promise<SignedPut>;
  /** Resolves when the store is usable, rejects with the reason when it is not. */
  check(): Promise<void>;
  close(): Promise<void>;
}

export type ObjectContent = Readable | Uint8Array;

export interface PutOptions {
  contentLength?: number;
  /** Ends the write; nothing remains of it. */
  signal?: AbortSignal;
}

export interface CreateOptions extends PutOptions {
  contentLength: number;
}

export interface StoredObject {
  size: number;
  etag: string;
}

export type CreateOutcome =
  | ({ outcome: 'created' } & StoredObject)
  | { outcome: 'exists' }
  | { outcome: 'length-mismatch' };

/** Bytes from `start` to `end`, both counted from 0 and both included; to the last one without `end`. */
export interface ByteRange {
  start: number;
  end?: number;
}

export interface ObjectSummary {
  /** The size of the whole object in bytes. */
  size: number;
  /** Milliseconds since the epoch. */
  lastModified: number;
  /** In quotes, as in the HTTP header. It changes whenever the object is replaced. */
  etag: string;
}

export interface OpenObject extends ObjectSummary {
  body: Readable;
  /** How many bytes the body will give. */
  length: number;
}

export interface ListOptions {
  after?: string;
  /** From 1 to 1000; a page never has more than 1000. */
  limit: number;
}

export interface ListedObject {
  key: string;
  size: number;
  lastModified: number;
}

export interface ObjectPage {
  objects: ListedObject[];
  next?: string;
}

export interface SignedPut {
  url: string;
  /** Headers that the upload must carry besides its Content-Length; they are part of what is signed. */
  headers: Record<string, string>;
}

const maximumPageSize = 1000;

/** The number of objects that a page with this limit has at most. */
export function pageSize(limit: number): number {
  if (!Number.isInteger(limit) || limit < 1)
    throw new RangeError('The limit of a page is a positive integer.');
  return Math.min(limit, maximumPageSize);
}

/** There is no room left. The HTTP layer answers 503; reads go on, and writing works again by itself. */
export class StorageFullError extends Error {
  override name = 'StorageFullError';
}

/** The key is a directory of other objects, or one of its directories is itself an object. */
export class KeyConflictError extends Error {
  override name = 'KeyConflictError';
}

/** A body did not have the number of bytes that its writer declared. */
export class LengthMismatchError extends Error {
  override name = 'LengthMismatchError';
}

/** The range asked for begins past the last byte. */
export class RangeNotSatisfiableError extends Error {
  override name = 'RangeNotSatisfiableError';
}

/** The bytes that a range means in an object of a size; undefined when it begins past the last one. */
export function resolveRange(range: ByteRange, size: number): { start: number; end: number } | undefined {
  const end = Math.min(range.end ?? size - 1, size - 1);
  return range.start >= 0 && range.start <= end ? { start: range.start, end } : undefined;
}
