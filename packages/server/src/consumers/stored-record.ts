import type { EventRecord, Routes } from '../events/events.ts';

/** What is kept of a record outside the log. */
export type StoredRecord = Omit<EventRecord, 'offset'>;

const errorCharacters = 4_000;

/**
 * A record as text, because text is what both databases store alike. JSON also carries the NUL characters
 * that a key or an id may have and a database may not.
 */
export function storeRecord(record: EventRecord): string {
  const { key, id, acceptedAt, mediaType, routes, body } = record;
  return JSON.stringify({
    key,
    id,
    acceptedAt,
    mediaType,
    routes,
    body: Buffer.from(body).toString('base64'),
  });
}

export function restoreRecord(offset: number, text: string): EventRecord {
  const stored: Omit<StoredRecord, 'body'> & { body: string; routes: Routes } = JSON.parse(text);
  return { ...stored, offset, body: Buffer.from(stored.body, 'base64') };
}

/** A key as a database can store it. Different keys stay different. */
export function storedKey(key: string): string {
  return key.includes('\0') || key.includes('\\')
    ? key.replaceAll('\\', '\\\\').replaceAll('\0', '\\0')
    : key;
}

/** What is kept of an error: it may come from a user's code and be of any size. */
export function storedError(error: unknown): string {
  const text = error instanceof Error ? error.message || error.name : String(error);
  return text.slice(0, errorCharacters).replaceAll('\0', '\uFFFD');
}
