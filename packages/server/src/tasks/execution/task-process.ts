/**
 * One process of a version: starting, then idle and busy in turn, then ended. It is asked to do one thing
 * at a time, and everything that can go wrong with it ends as a result or as a reason.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { Writable } from 'node:stream';
import type { Clock } from '../../platform/clock.ts';
import type { RunnableVersion } from '../version.ts';
import type { Invocation, InvocationError, InvocationResult, OutputLine } from './execution.ts';
import { encodeFrame, encodeInvocation, FrameReader, fromProcess, toProcess } from './frames.ts';
import { killTree } from './kill.ts';
import { lastWords } from './last-words.ts';
import type { Launch } from './launch.ts';
import { largestAnswer, largestOutput, mebibyte } from './limits.ts';
import { Output } from './output.ts';
import { outOfMemory, parseRuntimeError } from './runtime-error.ts';

export interface TaskProcessOptions {
  readonly version: RunnableVersion;
  readonly launch: Launch;
  readonly clock: Clock;
  readonly startLimitMs: number;
  onLine(line: OutputLine): void;
  /** The code answered with an error, which may be what came of breaking a limit: the moment to look. */
  onError(): void;
  /** The process can take an invocation. */
  onIdle(): void;
  /** Before anybody hears of it. */
  onEnd(end: ProcessEnd): void;
}

/** What is told when a process ends that was not asked to. */
export interface ProcessEnd {
  readonly error: InvocationError;
  readonly asked: boolean;
}

interface InHand {
  readonly invocation: Invocation;
  readonly startedAt: number;
  readonly resolve: (result: InvocationResult) => void;
}

type State = 'starting' | 'idle' | 'busy' | 'finishing' | 'ended';

const wordsKept = 10;

export class TaskProcess {
  readonly started: Promise<InvocationError | undefined>;
  readonly ended: Promise<ProcessEnd>;
  /** When it last became idle, on the clock that never goes back. */
  idleSince = 0;
  readonly #options: TaskProcessOptions;
  readonly #child: ChildProcess;
  readonly #output: Output;
  #state: State = 'starting';
  #inHand: InHand | undefined;
  #timer: NodeJS.Timeout | undefined;
  #reason: { error: InvocationError; kind: 'crash' | 'timeout' | 'unavailable'; asked: boolean } | undefined;
  #killing: Promise<void> | undefined;
  /** What it printed last while it started: all there is to tell when it ends without a word. */
  #firstWords: string[] = [];
  #settleStart: (error: InvocationError | undefined) => void = () => {};

  constructor(options: TaskProcessOptions) {
    this.#options = options;
    const { launch } = options;
    this.started = new Promise((resolve) => {
      this.#settleStart = resolve;
    });
    this.#output = new Output((stream, text) => this.#line(stream, text));
    const [path = '', ...parameters] = launch.command;
    this.#child = spawn(path, parameters, {
      stdio: launch.start === undefined ? ['pipe', 'pipe', 'pipe'] : ['pipe', 'pipe', 'pipe', 'pipe', 'pipe'],
      // Its own group, so that a signal to the service's terminal is not one to the tasks.
      detached: true,
      env: {},
      cwd: launch.directory,
      ...(launch.userId === undefined ? {} : { uid: launch.userId, gid: launch.groupId ?? launch.userId }),
    });
    this.ended = this.#watchEnd();
    this.#connect(launch);
    this.#timer = setTimeout(() => {
      this.#kill('crash', {
        type: 'Runtime.StartTimedOut',
        message: `The code did not ask for its first invocation within ${options.startLimitMs / 1000} seconds.`,
      });
    }, options.startLimitMs);
  }

  get state(): State {
    return this.#state;
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get launch(): Launch {
    return this.#options.launch;
  }

  /** Only for a process that is idle. */
  invoke(invocation: Invocation): Promise<InvocationResult> {
    const { version, clock, launch } = this.#options;
    const limitMs = version.timeoutSec * 1000;
    const description = {
      requestId: invocation.requestId,
      deadlineMs: clock.now() + limitMs,
      functionArn: `arn:aws:lambda:local:000000000000:function:${version.taskId}:${version.version}`,
    };
    this.#output.begin();
    return new Promise((resolve) => {
      this.#state = 'busy';
      this.#inHand = { invocation, startedAt: performance.now(), resolve };
      this.#timer = setTimeout(() => this.#timeOut(limitMs), limitMs);
      invocation.signal?.addEventListener('abort', this.#abort, { once: true });
      if (launch.api === undefined) {
        this.#channel()?.write(encodeInvocation(description, invocation.event));
      } else if (!launch.api.deliver({ ...description, event: invocation.event })) {
        this.#kill('crash', {
          type: 'Runtime.ConnectionLost',
          message: 'The process stopped waiting for work.',
        });
      }
    });
  }

  /** The process asked for its next invocation. */
  next(): void {
    if (this.#state === 'starting') {
      clearTimeout(this.#timer);
      this.#output.begin();
      this.#firstWords = [];
      this.#settleStart(undefined);
    } else if (this.#state !== 'finishing') return;
    if (this.#inHand !== undefined) {
      setImmediate(() => this.next());
      return;
    }
    clearTimeout(this.#timer);
    this.#state = 'idle';
    this.idleSince = performance.now();
    this.#options.onIdle();
  }

  answer(payload: Uint8Array): void {
    this.#settle((durationMs) => ({ outcome: 'success', payload, durationMs }));
  }

  fail(error: InvocationError): void {
    this.#options.onError();
    // The limit that it broke is the answer.
    if (this.#killing !== undefined) return;
    this.#settle((durationMs) => ({ outcome: 'failure', kind: 'error', error, durationMs }));
  }

  failStart(error: InvocationError): void {
    if (this.#state === 'starting') this.#kill('crash', error);
  }

  /** Ends the process for breaking a limit. */
  breakLimit(error: InvocationError): void {
    this.#kill('crash', error);
  }

  /** Ends the process because it is not needed any more. */
  stop(): Promise<ProcessEnd> {
    this.#kill('unavailable', { type: 'Task.Stopped', message: 'The task was stopped.' }, true);
    return this.ended;
  }

  readonly #abort = (): void => {
    this.#kill('unavailable', { type: 'Task.Aborted', message: 'The invocation was given up.' }, true);
  };

  #timeOut(limitMs: number): void {
    const message = `Task timed out after ${(limitMs / 1000).toFixed(2)} seconds`;
    this.#kill('timeout', { type: 'Task.TimedOut', message }, this.#state !== 'busy');
  }

  #settle(result: (durationMs: number) => InvocationResult): void {
    const inHand = this.#inHand;
    if (inHand === undefined || this.#state !== 'busy') return;
    this.#state = 'finishing';
    const durationMs = performance.now() - inHand.startedAt;
    const finish = (): void => {
      // Whoever ended it meanwhile has answered already.
      if (this.#inHand !== inHand) return;
      this.#release(inHand);
      inHand.resolve(result(durationMs));
    };
    if (this.#options.launch.api === undefined) {
      finish();
      this.next();
    } else {
      // What was printed before the answer is in the pipe by now; one turn of the loop reads it.
      setImmediate(finish);
    }
  }

  #release(inHand: InHand): void {
    this.#output.flush();
    this.#inHand = undefined;
    if (this.#options.launch.api === undefined) clearTimeout(this.#timer);
    inHand.invocation.signal?.removeEventListener('abort', this.#abort);
  }

  #kill(kind: 'crash' | 'timeout' | 'unavailable', error: InvocationError, asked = false): void {
    if (this.#state === 'ended' || this.#killing !== undefined) return;
    clearTimeout(this.#timer);
    this.#reason ??= { error, kind, asked };
    const { pid } = this.#child;
    const { sandboxed, userId, marker, group } = this.#options.launch;
    const exited = this.#child.exitCode !== null || this.#child.signalCode !== null;
    this.#killing =
      pid === undefined ? Promise.resolve() : killTree({ pid, exited, sandboxed, userId, marker, group });
  }

  #channel(): Writable | undefined {
    const channel = this.#child.stdio[3];
    return channel instanceof Writable ? channel : undefined;
  }

  #connect(launch: Launch): void {
    const { stdin, stdout, stderr, stdio } = this.#child;
    // A pipe to a process that has ended reports it; the end itself is what matters.
    for (const stream of stdio) stream?.on('error', () => {});
    stdout?.on('data', (bytes: Buffer) => this.#print('stdout', bytes));
    stderr?.on('data', (bytes: Buffer) => this.#print('stderr', bytes));
    stdin?.end(launch.script);
    if (launch.start === undefined) return;
    const reader = new FrameReader(largestAnswer + mebibyte);
    stdio[4]?.on('data', (bytes: Buffer) => {
      if (this.#state === 'ended') return;
      for (const { kind, body } of reader.take(bytes) ?? [{ kind: -1, body: bytes }]) this.#take(kind, body);
    });
    this.#channel()?.write(encodeFrame(toProcess.start, Buffer.from(JSON.stringify(launch.start))));
  }

  #take(kind: number, body: Buffer): void {
    if (kind === fromProcess.output) {
      this.#print(body[0] === 2 ? 'stderr' : 'stdout', body.subarray(1));
    } else if (kind === fromProcess.answer) this.answer(Buffer.from(body));
    else if (kind === fromProcess.error) this.fail(parseRuntimeError(body));
    else if (kind === fromProcess.ready) this.next();
    else if (kind === fromProcess.startError) this.failStart(parseRuntimeError(body));
    else if (kind === fromProcess.fatal) this.#kill('crash', parseRuntimeError(body));
    else this.#kill('crash', { type: 'Runtime.Malformed', message: 'The process sent what is no frame.' });
  }

  #print(stream: 'stdout' | 'stderr', bytes: Uint8Array): void {
    if (this.#output.take(stream, bytes)) return;
    const message = `The process printed more than ${largestOutput / mebibyte} MiB.`;
    this.#kill('crash', { type: 'Runtime.OutputTooLarge', message });
  }

  #line(stream: OutputLine['stream'], text: string): void {
    const { version, clock } = this.#options;
    if (this.#state === 'starting' && stream !== 'system')
      this.#firstWords = [...this.#firstWords, text].slice(-wordsKept);
    const invocation = this.#inHand?.invocation;
    const requestId = invocation?.requestId ?? '';
    const line: OutputLine = { time: clock.now(), version: version.version, requestId, stream, text };
    this.#options.onLine(line);
    invocation?.onLine?.(line);
  }

  async #watchEnd(): Promise<ProcessEnd> {
    const status = await new Promise<string>((resolve) => {
      this.#child.once('error', (error) => resolve(`could not be started: ${error.message}`));
      this.#child.once('exit', (code, signal) =>
        resolve(signal === null ? `ended with status ${code}` : `was ended by ${signal}`),
      );
    });
    clearTimeout(this.#timer);
    await lastWords(this.#child);
    await this.#killing;
    // Whatever it had started and left behind goes as well.
    this.#output.flush();
    const { launch, version } = this.#options;
    const exit: InvocationError = {
      type: 'Runtime.ExitError',
      message: `The process ${status} without an answer.`,
      ...(this.#firstWords.length === 0 ? {} : { trace: this.#firstWords }),
    };
    this.#kill('crash', launch.group?.ranOutOfMemory() ? outOfMemory(version.memoryMb) : exit);
    await this.#killing;
    this.#output.flush();
    const reason = this.#reason ?? {
      error: { type: 'Runtime.ExitError', message: status },
      kind: 'crash',
      asked: false,
    };
    if (!reason.asked) this.#line('system', `${reason.error.type}: ${reason.error.message}`);
    const inHand = this.#inHand;
    const end: ProcessEnd = { error: reason.error, asked: reason.asked };
    this.#state = 'ended';
    this.#options.onEnd(end);
    this.#settleStart(reason.error);
    if (inHand !== undefined) {
      this.#release(inHand);
      const durationMs = performance.now() - inHand.startedAt;
      inHand.resolve({ outcome: 'failure', kind: reason.kind, error: reason.error, durationMs });
    }
    for (const stream of this.#child.stdio) stream?.destroy();
    await launch.dispose();
    return end;
  }
}
