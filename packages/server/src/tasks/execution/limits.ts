/** What one process of a task may use, besides the memory and time its version names. */
export const mebibyte = 1024 * 1024;

/** The largest answer of a handler, as in Lambda. */
export const largestAnswer = 6 * mebibyte;
/** What is kept of the output of one invocation; the rest of it is counted and dropped. */
export const keptOutput = mebibyte;
/** Output past this ends the process: nobody reads it, and reading it away costs the service. */
export const largestOutput = 16 * mebibyte;
/** A longer line is cut into several. */
export const longestLine = 16 * 1024;

export const openFiles = 1024;
/** Threads count too; a JVM has about thirty before it runs any code of the task. */
export const processes = 128;
export const temporarySpace = 256 * mebibyte;
/** Processor time a process may use while it has nothing to do. */
export const idleProcessorSeconds = 10;

/** How long code may take until it asks for its first invocation. */
export const startLimitMs = 15_000;
/** How long a process with nothing to do is kept. */
export const idleLimitMs = 60_000;
/** How many invocations may wait for a process of one version. */
export const waitingInvocations = 1000;

/** How often memory, processor time and disk of the processes are looked at. */
export const watchIntervalMs = 200;

/**
 * How far tasks stand back when the processors are short. Linux divides what a session gets among the
 * processors it runs on, so a service on two of them would lose half of one to a loop at a niceness of 5.
 */
export const niceness = 12;

/** What a runtime needs itself before the memory of the version begins to count. */
export function runtimeMemoryMb(runtime: 'node' | 'python' | 'java' | 'provided'): number {
  return { node: 48, python: 16, java: 160, provided: 8 }[runtime];
}
