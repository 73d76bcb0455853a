import { partitionCount } from '../events/events.ts';
import { message } from './consumers.fixture.ts';
import { MemoryLog } from './memory-log.fixture.ts';

/** A log that is the same in every process that makes it, as one behind a network would be. */
export async function sameEverywhere(): Promise<MemoryLog> {
  const log = new MemoryLog();
  const entries = Array.from({ length: partitionCount }, (_, partition) =>
    message(`k${partition}`, 'x', { partition, acceptedAt: 1 }),
  );
  await log.append(entries);
  return log;
}
