import { type ChildProcess, spawn } from 'node:child_process';
import { Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { type ConverterAnswer, type ConverterRequest, readAnswer, recordsDescriptor } from './protocol.ts';

const program = fileURLToPath(new URL('./main.ts', import.meta.url));
const complaintLength = 2000;

/** The converter did not do what it was asked: it ended, took too long, or said why it could not. */
export class ConverterError extends Error {
  override readonly name = 'ConverterError';
}

export type AnswerOf<Kind extends ConverterAnswer['kind']> = Extract<ConverterAnswer, { kind: Kind }>;

interface Waiting {
  readonly reject: (error: ConverterError) => void;
}

/** A converter that runs: one question at a time, and records in between. */
export class ConverterProcess {
  readonly #child: ChildProcess;
  readonly #records: Socket;
  /** Resolves when the process is gone. */
  readonly ended: Promise<void>;
  readonly #waiting = new Set<Waiting>();
  #answered: ((answer: ConverterAnswer) => void) | undefined;
  #end: string | undefined;
  #complaint = '';

  /** Starts it. `parameters` are for Node itself. */
  constructor(parameters: readonly string[]) {
    // Nothing of the server's environment: it holds secrets, and the converter needs none of it. Fewer
    // arenas keep what the engine's threads have freed from being held back.
    this.#child = spawn(process.execPath, [...parameters, program], {
      env: { MALLOC_ARENA_MAX: '2' },
      stdio: ['ignore', 'ignore', 'pipe', 'ipc', 'pipe'],
      serialization: 'json',
    });
    const records = this.#child.stdio[recordsDescriptor];
    if (!(records instanceof Socket)) throw new ConverterError('The converter has no pipe for records.');
    this.#records = records;
    this.ended = new Promise((resolve) => {
      const end = (why: string): void => {
        this.#fail(why);
        resolve();
      };
      this.#child.once('exit', (code, signal) => end(`The converter ended (${signal ?? `code ${code}`})`));
      this.#child.once('error', (error) => end(`The converter could not be started: ${error.message}`));
    });
    // The pipe breaks when the process ends, which is told by its exit.
    this.#records.on('error', () => {});
    this.#child.stderr?.on('data', (piece: Buffer) => {
      this.#complaint = (this.#complaint + piece.toString()).slice(-complaintLength);
    });
    this.#child.on('message', (message) => this.#hear(message));
  }

  get processId(): number | undefined {
    return this.#child.pid;
  }

  get hasEnded(): boolean {
    return this.#end !== undefined;
  }

  /** Asks, and waits for the answer at most so long; a converter that does not answer is ended. */
  async ask<Kind extends ConverterAnswer['kind']>(
    request: ConverterRequest,
    kind: Kind,
    milliseconds: number,
  ): Promise<AnswerOf<Kind>> {
    const answer = await this.#bounded<ConverterAnswer>(milliseconds, (resolve, reject) => {
      this.#child.send(request, (error) => {
        if (error !== null) reject(new ConverterError(`The converter cannot be reached: ${error.message}`));
      });
      this.#answered = resolve;
    });
    if (isKind(answer, kind)) return answer;
    // What went wrong may have left the engine in any state; the next one starts afresh.
    this.kill();
    throw new ConverterError(
      answer.kind === 'failed' ? answer.message : `The converter answered ${answer.kind} instead of ${kind}.`,
    );
  }

  /** Resolves when the bytes are on their way, so that no more than a few of them wait in memory. */
  send(batch: Buffer, milliseconds: number): Promise<void> {
    return this.#bounded<void>(milliseconds, (resolve) => {
      this.#records.write(batch, (error) => {
        if (error === null || error === undefined) resolve();
      });
    });
  }

  /** Lets it end by itself. */
  release(): void {
    if (this.#child.connected) this.#child.disconnect();
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }

  /** Whether it keeps the server from ending. */
  hold(held: boolean): void {
    const parts = [
      this.#child,
      this.#child.channel,
      ...this.#child.stdio.filter((part) => part instanceof Socket),
    ];
    for (const part of parts) {
      if (held) part?.ref();
      else part?.unref();
    }
  }

  #bounded<Result>(
    milliseconds: number,
    start: (resolve: (result: Result) => void, reject: (error: ConverterError) => void) => void,
  ): Promise<Result> {
    return new Promise((resolve, reject) => {
      if (this.#end !== undefined) return reject(new ConverterError(this.#end));
      const timer = setTimeout(() => {
        this.#fail(`The converter did not answer within ${milliseconds} ms`);
        this.kill();
      }, milliseconds);
      const waiting = { reject: (error: ConverterError) => settle(() => reject(error)) };
      const settle = (finish: () => void): void => {
        clearTimeout(timer);
        this.#waiting.delete(waiting);
        finish();
      };
      this.#waiting.add(waiting);
      start((result) => settle(() => resolve(result)), waiting.reject);
    });
  }

  #hear(message: unknown): void {
    try {
      const answer = readAnswer(message);
      this.#answered?.(answer);
    } catch (error) {
      this.#fail(error instanceof Error ? error.message : String(error));
      this.kill();
    }
  }

  #fail(why: string): void {
    const complaint = this.#complaint.trim();
    this.#end ??= complaint === '' ? `${why}.` : `${why}: ${complaint}`;
    for (const waiting of [...this.#waiting]) waiting.reject(new ConverterError(this.#end));
  }
}

function isKind<Kind extends ConverterAnswer['kind']>(
  answer: ConverterAnswer,
  kind: Kind,
): answer is AnswerOf<Kind> {
  return answer.kind === kind;
}
