import assert from 'node:assert/strict';
import { stat, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { endOfWrite, isOn, isSync, type SystemCall } from './system-calls.ts';

const wal = 'events.db-wal';

/**
 * Takes away from the log what was never synced, as a loss of power would: the write-ahead log grows at
 * its end, so that is everything after what the last true sync has covered.
 *
 * Answers how many bytes are gone. Only for traces in which the log was not started over.
 */
export async function loseUnsynced(
  dataDirectory: string,
  calls: readonly SystemCall[],
  syncedBefore: number,
): Promise<number> {
  let written = syncedBefore;
  let synced = syncedBefore;
  for (const call of calls) {
    assert.ok(!(call.name === 'pwrite64' && isOn(call, 'events.db')), 'the log was not started over');
    if (call.name === 'pwrite64' && isOn(call, wal)) written = Math.max(written, endOfWrite(call));
    if (isSync(call) && isOn(call, wal) && call.result === 0 && !call.injected) synced = written;
  }
  const size = await logSize(dataDirectory);
  if (size <= synced) return 0;
  await truncate(join(dataDirectory, wal), synced);
  return size - synced;
}

/** How large the write-ahead log is; all of it is synced when nothing is under way. */
export async function logSize(dataDirectory: string): Promise<number> {
  return stat(join(dataDirectory, wal)).then(
    ({ size }) => size,
    () => 0,
  );
}
