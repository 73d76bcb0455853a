import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Database } from '../database/database.ts';
import type { Clock } from '../platform/clock.ts';
import { readEntries } from '../state/snapshot-store.ts';

/** Writes the state of an organization to a file, one JSON object a line, in bounded memory. */
export async function writeStateSnapshot(
  { database, clock }: { database: Database; clock: Clock },
  organizationId: string,
  path: string,
  signal: AbortSignal,
): Promise<void> {
  async function* lines() {
    for await (const entries of readEntries(database.query, organizationId, clock.now())) {
      let text = '';
      for (const entry of entries) {
        // The key and the attributes are JSON already.
        text += `{"key_parts":${entry.keyParts},"merged_key":${JSON.stringify(entry.mergedKey)},"attributes":${wellFormed(entry.attributes)},"version":${entry.version},"expires_at":${entry.expiresAt},"updated_at":${entry.updatedAt}}\n`;
      }
      yield text;
    }
  }
  await pipeline(Readable.from(lines()), createWriteStream(path, { mode: 0o600 }), { signal });
}

const escapes =
  /\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|(u[dD][89a-fA-F][\da-fA-F]{2})|[\s\S])/g;

/**
 * JSON without escapes of halves of characters, which JavaScript takes and the engine does not: one of
 * them would make the whole table unreadable. Such a half is shown as the sign for an unknown character.
 */
export function wellFormed(json: string): string {
  if (!json.includes('\\u')) return json;
  return json.replace(escapes, (whole, half: string | undefined) => (half === undefined ? whole : '\\ufffd'));
}
