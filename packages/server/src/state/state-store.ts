import { type ExpressionBuilder, type Kysely, sql } from 'kysely';
import type { Database } from '../database/database.ts';
import type { Schema } from '../database/schema.ts';
import { prepared } from './prepared.ts';

export type Queries = Kysely<Schema>;

/** An entry as it is written. */
export interface WrittenEntry {
  readonly organizationId: string;
  readonly mergedKey: string;
  readonly keyParts: readonly string[];
  /** JSON. */
  readonly attributes: string;
  readonly expiresAt: number | null;
}

/** An entry as it was found. */
export interface FoundEntry {
  /** JSON. */
  readonly attributes: string;
  readonly version: number;
  readonly expiresAt: number | null;
}

const selectEntry = prepared((queries) =>
  queries
    .selectFrom('state_entries')
    .select(['attributes', 'version', 'expires_at'])
    .where('organization_id', '=', '')
    .where('merged_key', '=', ''),
);

export async function findEntry(
  queries: Queries,
  organizationId: string,
  mergedKey: string,
  now: number,
): Promise<FoundEntry | undefined> {
  const [row] = await selectEntry(queries, [organizationId, mergedKey]);
  if (row === undefined || (row.expires_at !== null && row.expires_at <= now)) return undefined;
  return { attributes: row.attributes, version: row.version, expiresAt: row.expires_at };
}

/** What becomes of an entry that is written over. */
const overwritten = {
  attributes: sql<string>`excluded.attributes`,
  expires_at: sql<number>`excluded.expires_at`,
  updated_at: sql<number>`excluded.updated_at`,
};

/** One more, or the first one again where the entry had expired by the time it was written over. */
const nextVersion = sql<number>`case when state_entries.expires_at <= excluded.updated_at
  then excluded.version else state_entries.version + 1 end`;

function overwrite(queries: Queries, rows: readonly Schema['state_entries'][]) {
  return queries
    .insertInto('state_entries')
    .values(rows)
    .onConflict((conflict) =>
      conflict
        .columns(['organization_id', 'merged_key'])
        .doUpdateSet({ ...overwritten, version: nextVersion }),
    );
}

const blank = { organizationId: '', mergedKey: '', keyParts: [], attributes: '', expiresAt: 0 };
const overwriteOne = prepared((queries) => overwrite(queries, [rowOf(blank, 1, 0)]).returning('version'));

/** Writes an entry whatever was there before, and answers its version. */
export async function putEntry(queries: Queries, entry: WrittenEntry, now: number): Promise<number> {
  const [row] = await overwriteOne(queries, Object.values(rowOf(entry, 1, now)));
  if (row === undefined) throw new Error('the database gave no version for an entry');
  return row.version;
}

/** Writes entries whatever was there before. Each key may occur once. */
export async function putEntries(
  queries: Queries,
  entries: readonly WrittenEntry[],
  now: number,
): Promise<void> {
  await overwrite(
    queries,
    entries.map((entry) => rowOf(entry, 1, now)),
  ).execute();
}

/** Writes an entry where there is none, or none any more. False when there is one. */
export async function insertEntry(
  queries: Queries,
  entry: WrittenEntry,
  version: number,
  now: number,
): Promise<boolean> {
  const row = await queries
    .insertInto('state_entries')
    .values(rowOf(entry, version, now))
    .onConflict((conflict) =>
      conflict
        .columns(['organization_id', 'merged_key'])
        .doUpdateSet({ ...overwritten, version: sql<number>`excluded.version` })
        .where('state_entries.expires_at', '<=', now),
    )
    .returning('version')
    .executeTakeFirst();
  return row !== undefined;
}

/** Writes an entry over one of a version. False when there is none of that version. */
export async function replaceVersion(
  queries: Queries,
  entry: WrittenEntry,
  expectedVersion: number,
  now: number,
): Promise<boolean> {
  const row = await update(queries, entry, expectedVersion + 1, now)
    .where('version', '=', expectedVersion)
    .where(isLive(now))
    .executeTakeFirst();
  return row !== undefined;
}

/**
 * Writes an entry over one that is still as it was found. Its version alone would not tell: an entry that
 * was deleted and made again meanwhile may have the same one.
 */
export async function replaceFound(
  queries: Queries,
  entry: WrittenEntry,
  version: number,
  found: FoundEntry,
  now: number,
): Promise<boolean> {
  const row = await update(queries, entry, version, now)
    .where('version', '=', found.version)
    .where('expires_at', found.expiresAt === null ? 'is' : '=', found.expiresAt)
    .where('attributes', '=', found.attributes)
    .executeTakeFirst();
  return row !== undefined;
}

function update(queries: Queries, entry: WrittenEntry, version: number, now: number) {
  return queries
    .updateTable('state_entries')
    .set({ attributes: entry.attributes, expires_at: entry.expiresAt, updated_at: now, version })
    .where('organization_id', '=', entry.organizationId)
    .where('merged_key', '=', entry.mergedKey)
    .returning('version');
}

export async function deleteEntry(
  queries: Queries,
  organizationId: string,
  mergedKey: string,
): Promise<void> {
  await queries
    .deleteFrom('state_entries')
    .where('organization_id', '=', organizationId)
    .where('merged_key', '=', mergedKey)
    .execute();
}

export interface ListedEntry extends FoundEntry {
  readonly mergedKey: string;
  readonly keyParts: string[];
}

/** Which entries are listed. */
export interface Listing {
  readonly organizationId: string;
  /** The merged key of the leading parts; all entries without one. */
  readonly prefix: string | undefined;
  /** The merged key at which the page before ended. */
  readonly after: string | undefined;
  readonly mostEntries: number;
  /** Once the attributes of a page have so many bytes it has no more entries. */
  readonly mostBytes: number;
}

/**
 * A page of entries by merged key, and whether others follow. The keys of the page are found first, with
 * the sizes of what they hold, so that no more is read than fits: a thousand large entries would not.
 */
export async function listEntries(
  queries: Queries,
  listing: Listing,
  now: number,
): Promise<{ entries: ListedEntry[]; more: boolean }> {
  const { organizationId, mostEntries, mostBytes } = listing;
  const rows = await queries
    .with('candidate', () => candidates(queries, listing, now))
    .with('page', (page) =>
      page.selectFrom('candidate').select((row) => [
        'merged_key',
        'bytes',
        row.fn
          .sum<number>('bytes')
          .over((over) => over.orderBy('merged_key'))
          .as('bytes_with_it'),
        row.fn.countAll<number>().over().as('found'),
      ]),
    )
    .selectFrom('page')
    .innerJoin('state_entries as entry', 'entry.merged_key', 'page.merged_key')
    .select(['entry.merged_key', 'key_parts', 'attributes', 'version', 'expires_at', 'found'])
    .where('entry.organization_id', '=', organizationId)
    .where((row) => row(row('bytes_with_it', '-', row.ref('bytes')), '<', mostBytes))
    .orderBy('entry.merged_key')
    .limit(mostEntries)
    .execute();
  const entries = rows.map((row) => ({
    mergedKey: row.merged_key,
    keyParts: JSON.parse(row.key_parts),
    attributes: row.attributes,
    version: row.version,
    expiresAt: row.expires_at,
  }));
  return { entries, more: (rows[0]?.found ?? 0) > entries.length };
}

/** The keys that a page is taken from, and one more: the first ones of one range of the primary key. */
function candidates(queries: Queries, listing: Listing, now: number) {
  const { organizationId, prefix, after } = listing;
  const keys = queries
    .selectFrom('state_entries')
    .select(['merged_key', sql<number>`octet_length(attributes)`.as('bytes')])
    .where('organization_id', '=', organizationId)
    .where(isLive(now));
  const first = keys.orderBy('merged_key').limit(listing.mostEntries + 1);
  if (prefix === undefined) return after === undefined ? first : first.where('merged_key', '>', after);
  // What is below a prefix begins with it and a colon; the semicolon is the character after the colon.
  const below = first.where('merged_key', '<', `${prefix};`);
  if (after !== undefined && after !== prefix) return below.where('merged_key', '>', after);
  const children = below.where('merged_key', '>=', `${prefix}:`);
  if (after === prefix) return children;
  // Other keys sort between the entry of the prefix itself and those below it. The latter are cut off on
  // their own, or PostgreSQL would read all of them before it sorts.
  return keys
    .where('merged_key', '=', prefix)
    .unionAll(queries.selectFrom(children.as('child')).select(['child.merged_key', 'child.bytes']))
    .orderBy('merged_key')
    .limit(listing.mostEntries + 1);
}

/** Deletes some entries that have expired, and answers how many. Several nodes may do so at once. */
export async function deleteExpired(
  { query, engine }: Pick<Database, 'query' | 'engine'>,
  most: number,
  now: number,
): Promise<number> {
  const result = await query
    .deleteFrom('state_entries')
    .where(({ refTuple, selectFrom }) => {
      const expired = selectFrom('state_entries')
        .select(['organization_id', 'merged_key'])
        .where('expires_at', '<=', now)
        .orderBy('expires_at')
        .limit(most)
        // What somebody else is deleting or writing at this moment is left alone, not waited for.
        .$if(engine === 'postgres', (select) => select.forUpdate().skipLocked())
        .$asTuple('organization_id', 'merged_key');
      return sql<boolean>`${refTuple('organization_id', 'merged_key')} in ${expired}`;
    })
    // Once more, for an entry that was written again after it was found.
    .where('expires_at', '<=', now)
    .executeTakeFirst();
  return Number(result.numDeletedRows);
}

function isLive(now: number) {
  return (row: ExpressionBuilder<Schema, 'state_entries'>) =>
    row.or([row('expires_at', 'is', null), row('expires_at', '>', now)]);
}

function rowOf(entry: WrittenEntry, version: number, now: number): Schema['state_entries'] {
  return {
    organization_id: entry.organizationId,
    merged_key: entry.mergedKey,
    version,
    expires_at: entry.expiresAt,
    updated_at: now,
    key_parts: JSON.stringify(entry.keyParts),
    attributes: entry.attributes,
  };
}
