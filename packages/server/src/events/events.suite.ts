import { describe } from 'node:test';
import { appendingSuite } from './appending.suite.ts';
import { deduplicationSuite } from './deduplication.suite.ts';
import type { Site } from './entries.suite.ts';
import { lifeSuite } from './life.suite.ts';
import { trimmingSuite } from './trimming.suite.ts';

/** What every engine of the event log port must do. */
export function eventLogSuite(name: string, createSite: () => Promise<Site>): void {
  describe(name, { timeout: 120_000 }, () => {
    appendingSuite(createSite);
    deduplicationSuite(createSite);
    trimmingSuite(createSite);
    lifeSuite(createSite);
  });
}
