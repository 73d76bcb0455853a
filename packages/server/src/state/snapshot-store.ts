import type { Kysely } from 'kysely';
import type { Schema } from '../database/schema.ts';

/** An entry as it lies in the database. */
export interface StoredEntry {
  readonly mergedKey: string;
  /** A JSON array of texts. */
  readonly keyParts: string;
  /** A JSON object. */
  readonly attributes: string;
  readonly version: number;
  readonly expiresAt: number | null;
  readonly updatedAt: number;
}

const entriesAtOnce = 500;

/**
 * All entries of an organization that have not expired, a few hundred at a time, in the order of their
 * keys. Each part is as it was at one moment; what is written meanwhile may or may not be seen.
 */
export async function* readEntries(
  queries: Kysely<Schema>,
  organizationId: string,
  now: number,
): AsyncGenerator<readonly StoredEntry[]> {
  let after: string | undefined;
  for (;;) {
    const from = after;
    const rows = await queries
      .selectFrom('state_entries')
      .select(['merged_key', 'key_parts', 'attributes', 'version', 'expires_at', 'updated_at'])
      .where('organization_id', '=', organizationId)
      .$if(from !== undefined, (select) => select.where('merged_key', '>', from ?? ''))
      .orderBy('merged_key')
      .limit(entriesAtOnce)
      .execute();
    const live = rows.filter((row) => row.expires_at === null || row.expires_at > now);
    yield live.map((row) => ({
      mergedKey: row.merged_key,
      keyParts: row.key_parts,
      attributes: row.attributes,
      version: row.version,
      expiresAt: row.expires_at,
      updatedAt: row.updated_at,
    }));
    if (rows.length < entriesAtOnce) return;
    after = rows.at(-1)?.merged_key;
  }
}
