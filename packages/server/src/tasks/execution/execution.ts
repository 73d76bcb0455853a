/**
 * Running the code of tasks: one process handles one invocation at a time and is used again for the
 * next. A version has between none and `concurrency` of them, and no process ever serves two versions.
 */
import type { RunnableVersion, Runtime } from '../version.ts';

/** What a task printed, or what the service has to say about its process. */
export interface OutputLine {
  /** Milliseconds since the epoch. */
  readonly time: number;
  readonly version: string;
  /** Empty outside an invocation. */
  readonly requestId: string;
  readonly stream: 'stdout' | 'stderr' | 'system';
  readonly text: string;
}

export interface Invocation {
  readonly requestId: string;
  /** JSON. */
  readonly event: Uint8Array;
  /** Gives the invocation up: one that waits is not started, one that runs is killed. */
  readonly signal?: AbortSignal;
  /** The lines of this invocation alone, besides the ones that go to the log of the task. */
  readonly onLine?: (line: OutputLine) => void;
}

/** `trace` is there where the runtime has one. */
export interface InvocationError {
  readonly type: string;
  readonly message: string;
  readonly trace?: string[];
}

/**
 * How an invocation ended. `error`: the handler answered with an error. `timeout`: it ran longer than the
 * version allows. `crash`: its process ended, or was ended for breaking a limit. `unavailable`: the code
 * was not called at all, or was given up by the caller.
 */
export type InvocationResult =
  | { readonly outcome: 'success'; readonly payload: Uint8Array; readonly durationMs: number }
  | {
      readonly outcome: 'failure';
      readonly kind: 'error' | 'timeout' | 'crash' | 'unavailable';
      readonly error: InvocationError;
      readonly durationMs: number;
    };

/** The processes of one version. */
export interface TaskPool {
  /** Never rejects: every way to fail is a result. */
  invoke(invocation: Invocation): Promise<InvocationResult>;
  /** Why processes do not stay up now, for the status of the task. */
  readonly trouble: string | undefined;
  figures(): { processes: number; busy: number };
  /** Takes nothing new, lets what is in hand end (bounded by timeoutSec), stops the processes. */
  drain(): Promise<void>;
  /** Stops the processes at once; what is in hand fails. */
  close(): Promise<void>;
}

export interface Execution {
  /** For a runtime that this host has not, a sentence that names what is missing. */
  missing(runtime: Runtime): string | undefined;
  /** What isolation there is, one line, for the log at start. */
  readonly isolation: string;
  /** Why tasks cannot run at all, if so. */
  readonly refusal?: string;
  /** Starts the code once and waits for its first `next`. A failure carries the error text of the runtime. */
  probe(version: RunnableVersion, signal: AbortSignal): Promise<{ ok: true } | { ok: false; error: string }>;
  /** Warm processes for a version: 0 to `concurrency`, grown with the work, idle ones stopped, crashed ones restarted with growing delay. */
  open(version: RunnableVersion): TaskPool;
  close(): Promise<void>;
}
