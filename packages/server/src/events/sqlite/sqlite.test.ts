import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { adjustableClock } from '../../platform/clock.ts';
import { eventLogSuite } from '../events.suite.ts';
import type { EventLog } from '../events.ts';
import { openSqliteEventLog } from './sqlite-event-log.ts';

eventLogSuite('the SQLite event log', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'millrace-events-'));
  const clock = adjustableClock(Date.now());
  const opened: EventLog[] = [];
  return {
    open: async (limits) => {
      const log = await openSqliteEventLog({
        directory,
        clock,
        onFatal: (error) => {
          throw error;
        },
        ...(limits && { limits }),
      });
      opened.push(log);
      return log;
    },
    passDeduplicationWindow: async () => clock.advance(15 * 60_000),
    remove: async () => {
      await Promise.all(opened.map((log) => log.close()));
      await rm(directory, { recursive: true });
    },
  };
});
