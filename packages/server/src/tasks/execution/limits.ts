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
const processes = 128;
export const temporarySpace = 256 * mebibyte;
export const sharedMemory = 16 * mebibyte;
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
const runtimeMb = { node: 48, python: 16, java: 160, provided: 8 } as const;
/** Of the small Node process in front of a runtime in a sandbox. */
const forwarderMb = 24;
/** What the kernel keeps for the processes of a task, which counts in a control group only. */
const kernelMb = 32;
/** The processes that hold a sandbox. They count in a control group only. */
const sandboxProcesses = 8;

interface Run {
  readonly kind: keyof typeof runtimeMb;
  readonly memoryMb: number;
  readonly sandboxed: boolean;
}

/** Memory that the processes of a task may have of their own. */
export function allowedMemory({ kind, memoryMb, sandboxed }: Run): number {
  return (memoryMb + runtimeMb[kind] + (sandboxed && kind !== 'node' ? forwarderMb : 0)) * mebibyte;
}

/** The same as a control group counts it: what is written to a tmp in memory is part of it. */
export function allowedGroupMemory(run: Run & { readonly temporaryInMemory: boolean }): number {
  const files = (run.temporaryInMemory ? temporarySpace : 0) + (run.sandboxed ? sharedMemory : 0);
  return allowedMemory(run) + kernelMb * mebibyte + files;
}

export function allowedProcesses({ kind }: Pick<Run, 'kind'>): number {
  return processes * (kind === 'java' ? 2 : 1);
}

export function allowedGroupProcesses(run: Run): number {
  return allowedProcesses(run) + (run.sandboxed ? sandboxProcesses : 0);
}
