import { partitionCount } from './events.ts';

/**
 * The partition of a message key: FNV-1a over its UTF-16 code units, folded. It must never change, because
 * order is kept per key and a key that moved would be in two places.
 */
export function partitionOf(key: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < key.length; index += 1) {
    const unit = key.charCodeAt(index);
    hash = Math.imul(hash ^ (unit & 0xff), 0x01000193);
    hash = Math.imul(hash ^ (unit >>> 8), 0x01000193);
  }
  return ((hash >>> 16) ^ hash) & (partitionCount - 1);
}
