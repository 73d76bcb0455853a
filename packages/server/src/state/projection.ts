import type { NamedType } from '@millrace/contract';
import type { Attributes } from './attributes.ts';

type StoreDefinition = NonNullable<NamedType<'Topic'>['store']>;
type StoreKey = NamedType<'StoreKey'>;

/** An entry that a message becomes. */
export interface ProjectedEntry {
  readonly keyParts: string[];
  readonly attributes: Attributes;
  readonly ttlInSec: number;
}

/**
 * The state entries that a message of a topic with a store becomes: one for each key of the store, under
 *
 *     <topic> : PRIMARY | GSI<n> | LSI<n> : <values of pkParts> : <rangePrefix> : <values of skParts>
 *
 * where an empty rangePrefix is left out. All of them hold the same attributes: the fields of the message,
 * less the blacklist, or only those on the whitelist. A message without one of the key fields cannot be
 * stored; the answer then says which field it lacks.
 */
export function project(
  topicName: string,
  store: StoreDefinition,
  message: Attributes,
): ProjectedEntry[] | { readonly missing: string } {
  const attributes = selectFields(store, message);
  const entries: ProjectedEntry[] = [];
  for (const key of store.keys) {
    const keyParts = [
      topicName,
      key.tableType === 'PRIMARY' ? 'PRIMARY' : `${key.tableType}${key.indexNumber ?? 0}`,
    ];
    const missing = addParts(keyParts, key, message);
    if (missing !== undefined) return { missing };
    entries.push({ keyParts, attributes, ttlInSec: store.ttlInSec });
  }
  return entries;
}

function addParts(keyParts: string[], key: StoreKey, message: Attributes): string | undefined {
  for (const [index, fields] of [key.pkParts, key.skParts ?? []].entries()) {
    if (index === 1 && key.rangePrefix !== '') keyParts.push(key.rangePrefix);
    for (const field of fields) {
      const part = keyPart(message, field);
      if (part === undefined) return field;
      keyParts.push(part);
    }
  }
  return undefined;
}

/** Text, numbers and booleans can be part of a key; an empty text cannot. */
function keyPart(message: Attributes, field: string): string | undefined {
  const value = Object.hasOwn(message, field) ? message[field] : undefined;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function selectFields(store: StoreDefinition, message: Attributes): Attributes {
  const allowed = store.whitelist === undefined ? undefined : new Set(store.whitelist);
  const denied = new Set(store.blacklist);
  if (allowed === undefined && denied.size === 0) return message;
  return Object.fromEntries(
    Object.entries(message).filter(([name]) => (allowed?.has(name) ?? true) && !denied.has(name)),
  );
}
