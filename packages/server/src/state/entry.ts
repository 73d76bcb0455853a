import { type Attributes, decodeAttributes } from './attributes.ts';

/** An entry of an organization, as it is read and answered. */
export interface StateEntry {
  readonly keyParts: string[];
  readonly mergedKey: string;
  readonly attributes: Attributes;
  /** The second from which on it is gone. */
  readonly ttlInEpochSec?: number;
  /**
   * 1 when the entry is made, and one more for each change. An entry that is made again after it was
   * deleted or has expired begins at 1 again.
   */
  readonly version: number;
}

/** A key of an organization. */
export interface EntryKey {
  readonly organizationId: string;
  readonly keyParts: string[];
  readonly mergedKey: string;
}

/** When an entry that is written now expires: at the begin of a second, of which clients are told. */
export function expiryOf(now: number, ttlInSec: number | undefined): number | null {
  return ttlInSec === undefined ? null : (Math.floor(now / 1000) + ttlInSec) * 1000;
}

export function entryOf(
  key: { readonly keyParts: string[]; readonly mergedKey: string },
  attributes: Attributes,
  version: number,
  expiresAt: number | null,
): StateEntry {
  const { keyParts, mergedKey } = key;
  if (expiresAt === null) return { keyParts, mergedKey, attributes, version };
  return { keyParts, mergedKey, attributes, ttlInEpochSec: expiresAt / 1000, version };
}

export function foundEntryOf(
  key: { readonly keyParts: string[]; readonly mergedKey: string },
  found: { readonly attributes: string; readonly version: number; readonly expiresAt: number | null },
): StateEntry {
  return entryOf(key, decodeAttributes(found.attributes), found.version, found.expiresAt);
}
