import { type ChildProcess, spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import type { Static, TSchema } from 'typebox';
import { Compile, type Validator } from 'typebox/compile';

/** A program and how it is started. */
export interface Launch {
  readonly command: string;
  readonly parameters: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly directory?: string | undefined;
  /** bubblewrap tells the id of the process it has started, which is not its own. */
  readonly tellsProcessId: boolean;
}

/** The child ended, by itself or by us, before it had answered. */
export class ChildEndedError extends Error {
  override name = 'ChildEndedError';
}

interface Waiting {
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: Error) => void;
}

const startMilliseconds = 15_000;
const pageBytes = 4096;
const mostComplaint = 2000;

/** A child process that answers numbered requests, each with an answer of a known shape. */
export class Child<Request extends object, Answer extends TSchema> {
  readonly #process: ChildProcess;
  readonly #answers: Validator<Record<never, never>, Answer>;
  readonly #waiting = new Map<number, Waiting>();
  readonly ended: Promise<void>;
  #hasEnded = false;
  #innerId: number | undefined;
  #next = 0;
  #complaint = '';

  private constructor(launch: Launch, answers: Validator<Record<never, never>, Answer>) {
    this.#answers = answers;
    this.#process = spawn(launch.command, launch.parameters, {
      env: launch.environment,
      ...(launch.directory === undefined ? {} : { cwd: launch.directory }),
      stdio: ['ignore', 'ignore', 'pipe', 'ipc', 'pipe'],
      serialization: 'json',
    });
    this.ended = new Promise((resolve) => {
      const end = () => {
        this.#hasEnded = true;
        this.#giveUp();
        resolve();
      };
      this.#process.once('exit', end);
      this.#process.once('error', (error) => {
        this.#complaint = error.message;
        end();
      });
    });
    // What a crash leaves on it is for the log; it is read to the end so that a child never waits for us.
    this.#process.stderr?.on('data', (chunk: Buffer) => {
      this.#complaint = (this.#complaint + chunk.toString()).slice(-mostComplaint);
    });
    if (launch.tellsProcessId) this.#readProcessId(this.#process.stdio[4]);
    this.#process.on('message', (message) => this.#hear(message));
  }

  /** Starts the program and waits until it is ready. */
  static async start<Request extends object, Answer extends TSchema>(
    launch: Launch,
    answers: Validator<Record<never, never>, Answer>,
  ): Promise<Child<Request, Answer>> {
    const child = new Child<Request, Answer>(launch, answers);
    let timer: NodeJS.Timeout | undefined;
    const ready = new Promise<void>((resolve, reject) => {
      child.#waiting.set(0, { resolve: () => resolve(), reject });
      timer = setTimeout(() => reject(new ChildEndedError('it was not ready in time')), startMilliseconds);
    });
    try {
      await ready;
      return child;
    } catch (error) {
      child.kill();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** What it complained about last. */
  get complaint(): string {
    return this.#complaint;
  }

  /** Asks and waits for the answer. Rejects with ChildEndedError when the child ends first. */
  ask(request: Request): Promise<Static<Answer>> {
    this.#next += 1;
    const id = this.#next;
    return new Promise<unknown>((resolve, reject) => {
      if (this.#hasEnded) return reject(new ChildEndedError(this.#complaint));
      this.#waiting.set(id, { resolve, reject });
      this.tell({ ...request, id });
    }).then((answer) => {
      if (this.#answers.Check(answer)) return answer;
      this.kill();
      throw new ChildEndedError('it gave an answer of the wrong form');
    });
  }

  /** Says something that has no answer. */
  tell(message: object): void {
    // A channel that is just closing ends in the exit of the child, which is dealt with.
    if (this.#process.connected) this.#process.send(message, () => {});
  }

  /** Ends it at once. Nobody who has asked it something waits for it to be gone. */
  kill(): void {
    this.#giveUp();
    if (this.#hasEnded) return;
    if (this.#innerId !== undefined) killQuietly(this.#innerId);
    this.#process.kill('SIGKILL');
  }

  /** The memory it has in use, in bytes. */
  async residentBytes(): Promise<number> {
    const id = this.#innerId ?? this.#process.pid;
    if (id === undefined || this.#hasEnded) return 0;
    const text = await readFile(`/proc/${id}/statm`, 'latin1').catch(() => '');
    return Number(text.split(' ')[1] ?? 0) * pageBytes;
  }

  #giveUp(): void {
    for (const { reject } of this.#waiting.values()) reject(new ChildEndedError(this.#complaint));
    this.#waiting.clear();
  }

  #hear(message: unknown): void {
    if (typeof message !== 'object' || message === null) return;
    const id = 'id' in message && typeof message.id === 'number' ? message.id : 0;
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    waiting?.resolve(message);
  }

  #readProcessId(stream: unknown): void {
    let text = '';
    if (!isReadable(stream)) return;
    stream.on('data', (chunk: Buffer) => {
      text = (text + chunk.toString()).slice(0, mostComplaint);
      const id = /"child-pid": *(\d+)/.exec(text)?.[1];
      if (id !== undefined) this.#innerId = Number(id);
    });
  }
}

export function compileAnswers<Answer extends TSchema>(
  answers: Answer,
): Validator<Record<never, never>, Answer> {
  return Compile(answers);
}

function isReadable(stream: unknown): stream is Readable {
  return typeof stream === 'object' && stream !== null && 'on' in stream;
}

function killQuietly(id: number): void {
  try {
    process.kill(id, 'SIGKILL');
  } catch {
    // It has ended already.
  }
}
