/**
 * The processes of one version. An invocation goes to a process that is idle, the one used last first, so
 * that those nobody needs stay idle and are stopped. When none is idle another is started, up to the
 * concurrency of the version. After processes that did not start or crashed the next start waits, longer
 * each time; one invocation that goes well makes all of that forgotten.
 */
import type { Invocation, InvocationError, InvocationResult, TaskPool } from './execution.ts';
import { waitingInvocations } from './limits.ts';
import { startWords } from './start-words.ts';
import type { ProcessEnd, TaskProcess } from './task-process.ts';

export interface PoolOptions {
  readonly concurrency: number;
  readonly timeoutMs: number;
  readonly idleLimitMs: number;
  /** Starts a process. Rejects when it cannot even be tried. */
  start(events: ProcessEvents): Promise<TaskProcess>;
  /** Called once, when nothing of this pool is left. */
  onClosed(): Promise<void>;
}

export interface ProcessEvents {
  onIdle(process: TaskProcess): void;
  onEnd(process: TaskProcess, end: ProcessEnd): void;
}

interface Waiting {
  readonly invocation: Invocation;
  readonly since: number;
  readonly resolve: (result: InvocationResult) => void;
  readonly abort: () => void;
}

const firstDelayMs = 100;
const longestDelayMs = 30_000;

export class ProcessPool implements TaskPool {
  readonly #options: PoolOptions;
  readonly #processes = new Set<TaskProcess>();
  readonly #idle: TaskProcess[] = [];
  readonly #waiting: Waiting[] = [];
  readonly #ending = new Set<Promise<void>>();
  #starting = 0;
  #failures = 0;
  #trouble: string | undefined;
  #retry: NodeJS.Timeout | undefined;
  #state: 'open' | 'draining' | 'closed' = 'open';
  #settled: (() => void)[] = [];
  #closing: Promise<void> | undefined;

  constructor(options: PoolOptions) {
    this.#options = options;
  }

  get trouble(): string | undefined {
    return this.#trouble;
  }

  figures(): { processes: number; busy: number } {
    const busy = [...this.#processes].filter(({ state }) => state === 'busy').length;
    return { processes: this.#processes.size, busy };
  }

  /** The processes there are, for the watch. */
  processes(): Iterable<TaskProcess> {
    return this.#processes;
  }

  invoke(invocation: Invocation): Promise<InvocationResult> {
    if (this.#state !== 'open') return Promise.resolve(unavailable(stopped, 0));
    if (invocation.signal?.aborted) return Promise.resolve(unavailable(givenUp, 0));
    if (this.#waiting.length >= waitingInvocations) {
      const message = `${waitingInvocations} invocations of this task wait already.`;
      return Promise.resolve(unavailable({ type: 'Task.Overloaded', message }, 0));
    }
    return new Promise((resolve) => {
      const waiting: Waiting = {
        invocation,
        since: performance.now(),
        resolve,
        abort: () => this.#giveUp(waiting),
      };
      invocation.signal?.addEventListener('abort', waiting.abort, { once: true });
      this.#waiting.push(waiting);
      this.#assign();
    });
  }

  /** Starts one process; the words of the runtime when it does not come up. */
  async tryStart(signal: AbortSignal): Promise<string | undefined> {
    if (signal.aborted) return givenUp.message;
    const abort = (): void => void this.close();
    signal.addEventListener('abort', abort, { once: true });
    try {
      await this.#start();
      const [process] = this.#processes;
      const error = process === undefined ? undefined : await process.started;
      if (error === undefined) return process === undefined ? this.#trouble : undefined;
      return startWords(error);
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }

  async drain(): Promise<void> {
    if (this.#state === 'open') this.#state = 'draining';
    if (this.#waiting.length > 0 || this.figures().busy > 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, this.#options.timeoutMs);
        this.#settled.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
    await this.close();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** Stops processes that have had nothing to do for too long. */
  stopIdle(now: number): void {
    // The longest idle are at the front.
    while (this.#idle[0] !== undefined && now - this.#idle[0].idleSince > this.#options.idleLimitMs) {
      void this.#idle.shift()?.stop();
    }
  }

  async #close(): Promise<void> {
    this.#state = 'closed';
    clearTimeout(this.#retry);
    this.#failWaiting(stopped);
    await Promise.all([...this.#processes].map((process) => process.stop()));
    // One that was just being started ends itself when it sees that the pool is closed.
    while (this.#starting > 0) await new Promise<void>((resolve) => this.#settled.push(resolve));
    await Promise.all([...this.#processes].map((process) => process.stop()));
    await Promise.all(this.#ending);
    await this.#options.onClosed();
  }

  #assign(): void {
    while (this.#waiting.length > 0) {
      const process = this.#idle.pop();
      if (process === undefined) break;
      if (process.state !== 'idle') continue;
      const waiting = this.#waiting.shift();
      if (waiting === undefined) break;
      waiting.invocation.signal?.removeEventListener('abort', waiting.abort);
      void process.invoke(waiting.invocation).then((result) => this.#done(waiting, result));
    }
    this.#grow();
  }

  #done(waiting: Waiting, result: InvocationResult): void {
    if (result.outcome === 'success' || result.kind === 'error') {
      this.#failures = 0;
      this.#trouble = undefined;
    }
    waiting.resolve(result);
    this.#tellSettled();
  }

  #tellSettled(): void {
    if (this.#state === 'closed' ? this.#starting > 0 : this.#waiting.length > 0 || this.figures().busy > 0)
      return;
    for (const settled of this.#settled.splice(0)) settled();
  }

  #grow(): void {
    if (this.#retry !== undefined || this.#state === 'closed') return;
    const coming = [...this.#processes].filter(({ state }) => state === 'starting').length + this.#starting;
    const room = this.#options.concurrency - this.#processes.size - this.#starting;
    for (let more = Math.min(room, this.#waiting.length - coming); more > 0; more -= 1) void this.#start();
  }

  async #start(): Promise<void> {
    this.#starting += 1;
    try {
      const process = await this.#options.start({
        onIdle: (idle) => this.#onIdle(idle),
        onEnd: (ended, end) => this.#onEnd(ended, end),
      });
      this.#processes.add(process);
      if (this.#state === 'closed') void process.stop();
      this.#watch(process);
    } catch (error) {
      this.#onFailure({
        type: 'Runtime.StartFailed',
        message: error instanceof Error ? error.message : String(error),
      });
    } finally {
      this.#starting -= 1;
      this.#tellSettled();
    }
  }

  #watch(process: TaskProcess): void {
    void process.started.then((error) => {
      // Where another process runs, those who wait have somebody to wait for.
      const others = [...this.#processes].some((one) => one !== process && one.state !== 'ended');
      if (error !== undefined && !others) this.#failWaiting(error);
    });
  }

  #onIdle(process: TaskProcess): void {
    this.#idle.push(process);
    this.#assign();
  }

  #onEnd(process: TaskProcess, { error, asked }: ProcessEnd): void {
    this.#processes.delete(process);
    const at = this.#idle.indexOf(process);
    if (at >= 0) this.#idle.splice(at, 1);
    const cleared = process.ended.then(() => {
      this.#ending.delete(cleared);
    });
    this.#ending.add(cleared);
    // What takes too long is slow, not broken: the next process may start at once.
    if (!asked && error.type !== 'Task.TimedOut') this.#onFailure(error);
    this.#grow();
  }

  #onFailure(error: InvocationError): void {
    this.#trouble = `${error.type}: ${error.message}`;
    this.#failures += 1;
    if (this.#state === 'closed' || this.#retry !== undefined) return;
    const delayMs = Math.min(longestDelayMs, firstDelayMs * 2 ** Math.min(this.#failures - 1, 20));
    this.#retry = setTimeout(() => {
      this.#retry = undefined;
      this.#grow();
    }, delayMs);
  }

  #giveUp(waiting: Waiting): void {
    const at = this.#waiting.indexOf(waiting);
    if (at < 0) return;
    this.#waiting.splice(at, 1);
    waiting.resolve(unavailable(givenUp, performance.now() - waiting.since));
    this.#tellSettled();
  }

  #failWaiting(error: InvocationError): void {
    const now = performance.now();
    for (const { invocation, abort, resolve, since } of this.#waiting.splice(0)) {
      invocation.signal?.removeEventListener('abort', abort);
      resolve(unavailable(error, now - since));
    }
    this.#tellSettled();
  }
}

const stopped: InvocationError = { type: 'Task.Stopped', message: 'The task was stopped.' };
const givenUp: InvocationError = { type: 'Task.Aborted', message: 'The invocation was given up.' };

function unavailable(error: InvocationError, durationMs: number): InvocationResult {
  return { outcome: 'failure', kind: 'unavailable', error, durationMs };
}
