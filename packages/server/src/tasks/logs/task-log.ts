/** What a task wrote, or what the service has to say about it. */
export interface LogLine {
  /** Milliseconds since the epoch. */
  readonly time: number;
  readonly version: string;
  /** Empty outside an invocation. */
  readonly requestId: string;
  readonly stream: 'stdout' | 'stderr' | 'system';
  readonly text: string;
}

export interface LogListing {
  /** Only lines from this time on, in milliseconds since the epoch. */
  readonly since?: number | undefined;
  /** Where the page before ended: its `next`. */
  readonly after?: string | undefined;
  /** Begin so that the page ends with the newest line; not together with `after`. */
  readonly newest?: boolean | undefined;
  readonly limit: number;
}

export interface LogPage {
  /** Newest last. */
  readonly lines: LogLine[];
  /** Where the next page begins, towards newer lines: given when there are more of them. */
  readonly next: string | undefined;
}

/**
 * What tasks write, kept per task up to a bound: the oldest lines make place for new ones.
 *
 * The lines of one task have one order, in which they were kept. It is the order of writing for each node,
 * and a listing or a follower that goes on behind a line misses none that is kept later, on whatever node.
 */
export interface TaskLog {
  /**
   * Takes a line. It never waits: lines are kept a moment later, and where they come faster than that they
   * are dropped, and a line of the stream `system` says at that place how many.
   */
  write(organizationId: string, taskId: string, line: LogLine): void;
  /** A page of lines, with all that were written on this node before. */
  list(organizationId: string, taskId: string, listing: LogListing): Promise<LogPage>;
  /**
   * The lines that are kept from now on, or behind the place that `list` gave as `next`, until the signal is
   * aborted. A follower that is so slow that lines are gone before it comes to them is told so by a line of
   * the stream `system`.
   */
  follow(
    organizationId: string,
    taskId: string,
    signal: AbortSignal,
    after?: string | undefined,
  ): AsyncIterable<LogLine>;
  /** Deletes all lines of a task. */
  forget(organizationId: string, taskId: string): Promise<void>;
  /** Resolves when all lines that were written before are kept. */
  flush(): Promise<void>;
  /** Keeps what was written and ends followers. */
  close(): Promise<void>;
}
