import type { Database } from '../database/database.ts';
import { deleteDeadLettersById, listRedriven } from './dead-letter-store.ts';
import { listParkedAfter, listParkedKeys, listPartitionsWithParked, putParked } from './parked-store.ts';
import type { Share } from './share.ts';
import { moveCursors } from './share-store.ts';
import { restoreRecord, storedKey } from './stored-record.ts';

const keysAtOnce = 1_000;
const lettersAtOnce = 50;

/** Reads which keys of newly taken shares of a topic are parked. */
export async function loadParkedKeys(
  database: Database,
  consumerId: string,
  topicName: string,
  shares: readonly Share[],
): Promise<void> {
  const withParked = await listPartitionsWithParked(database.query, consumerId, topicName);
  for (const share of shares) {
    if (!withParked.has(share.address.partition)) continue;
    for (let after = ''; ; ) {
      const page = await listParkedKeys(database.query, consumerId, share.address, after, keysAtOnce);
      for (const { key, rows, nextAttemptAt = 0 } of page) share.parked.park(key, nextAttemptAt, rows);
      after = page.at(-1)?.key ?? after;
      if (page.length < keysAtOnce) break;
    }
    const ahead = await listParkedAfter(database.query, consumerId, share.address, share.committed);
    for (const offset of ahead) share.parkedAhead.add(offset);
  }
}

/**
 * Moves some dead letters of a share that are to be handled again to its parked records, due now and as if
 * they had never been tried. Answers the keys, one for each, or undefined when the share is another's.
 */
export async function moveRedriven(
  database: Database,
  consumerId: string,
  share: Share,
): Promise<{ keys: string[]; more: boolean } | undefined> {
  const { topicName, partition } = share.address;
  const change = { topicName, partition, version: share.version, cursor: share.committed };
  const moved = await database.transaction(async (transaction) => {
    const fence = await moveCursors(transaction, consumerId, [change]);
    if (fence.size === 0) return undefined;
    const letters = await listRedriven(transaction, consumerId, share.address, lettersAtOnce);
    const records = letters.map(({ record_offset, record }) => ({
      ...share.address,
      offset: record_offset,
      key: storedKey(restoreRecord(record_offset, record).key),
      attempts: 0,
      nextAttemptAt: undefined,
      error: undefined,
      stored: record,
    }));
    await putParked(transaction, consumerId, records);
    if (letters.length > 0) {
      await deleteDeadLettersById(
        transaction,
        consumerId,
        letters.map((letter) => letter.id),
      );
    }
    return { keys: records.map((record) => record.key), more: letters.length === lettersAtOnce };
  });
  if (moved !== undefined) share.version += 1;
  return moved;
}
