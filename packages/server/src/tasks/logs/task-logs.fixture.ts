import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { Database } from '../../database/database.ts';
import { adjustableClock } from '../../platform/clock.ts';
import { silentLog } from '../../platform/log.ts';
import type { LogLine, LogListing } from './task-log.ts';
import { type TaskLogBounds, TaskLogs } from './task-logs.ts';

export type OpenDatabase = () => Promise<{ database: Database; close(): Promise<void> }>;

export const start = 1_794_700_800_400;
export const organizationId = 'o1';
export const taskId = 't1';

export function line(text: string, other: Partial<LogLine> = {}): LogLine {
  return { time: start, version: '1', requestId: 'r1', stream: 'stdout', text, ...other };
}

/** Polls until it holds, with a bound. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + 15_000;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`Not in time: ${what}`);
    await delay(5);
  }
}

export type LogSite = ReturnType<typeof logSite>;

/** Logs on a database that is open while the tests of the calling suite run, empty for each of them. */
export function logSite(open: OpenDatabase) {
  const clock = adjustableClock(start);
  let database: Database;
  let close: () => Promise<void>;
  const opened: TaskLogs[] = [];
  let logs: TaskLogs;

  before(async () => {
    ({ database, close } = await open());
  });
  after(() => close());
  beforeEach(async () => {
    clock.set(start);
    await database.query.deleteFrom('task_logs').execute();
    logs = node();
  });
  afterEach(() => Promise.all(opened.splice(0).map((each) => each.close())));

  /** Another node: it shares nothing but the database. It keeps lines only when it is told to. */
  function node(bounds: Partial<TaskLogBounds> = {}, on: Database = database): TaskLogs {
    const made = new TaskLogs({
      database: on,
      clock,
      log: silentLog,
      bounds: { keepMilliseconds: 600_000, lookMilliseconds: 50, ...bounds },
    });
    opened.push(made);
    return made;
  }

  return {
    clock,
    get database() {
      return database;
    },
    get logs() {
      return logs;
    },
    node,
    write(...texts: string[]): void {
      for (const text of texts) logs.write(organizationId, taskId, line(text));
    },
    async texts(listing: Partial<LogListing> = {}, from: TaskLogs = logs): Promise<string[]> {
      const page = await from.list(organizationId, taskId, { limit: 1000, ...listing });
      return page.lines.map(({ text }) => text);
    },
    /** All lines, page by page. */
    async pages(listing: LogListing, from: TaskLogs = logs): Promise<string[][]> {
      const pages: string[][] = [];
      let next: string | undefined;
      do {
        const page = await from.list(organizationId, taskId, { ...listing, after: next });
        assert.ok(page.lines.length > 0 || next === undefined, 'no page is empty but a lone one');
        pages.push(page.lines.map(({ text }) => text));
        next = page.next;
      } while (next !== undefined);
      return pages;
    },
    /** Collects what a follower hears. */
    follow(from: TaskLogs = logs, behind?: string) {
      const controller = new AbortController();
      const heard: LogLine[] = [];
      const ended = (async () => {
        for await (const each of from.follow(organizationId, taskId, controller.signal, behind)) {
          heard.push(each);
        }
      })();
      return {
        heard,
        ended,
        texts: () => heard.map(({ text }) => text),
        async stop(): Promise<void> {
          controller.abort();
          await ended;
        },
      };
    },
  };
}
