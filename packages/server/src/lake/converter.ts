import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { PackedRecords } from '../events/events.ts';
import { type Column, columnLimit, readColumns } from './columns.ts';
import { batchesOf, type LakeRecord } from './converter/frames.ts';
import { BatchRooms, packedBatches } from './converter/packed-frames.ts';
import { type AnswerOf, ConverterError, ConverterProcess } from './converter/process.ts';
import type {
  ConverterAnswer,
  ConverterRequest,
  MergedFile,
  Survey,
  WrittenFile,
} from './converter/protocol.ts';
import { Turns } from './converter/turns.ts';

export type { LakeRecord } from './converter/frames.ts';
export { ConverterError } from './converter/process.ts';
export type { ColumnSurvey, MergedFile, Survey, WrittenFile } from './converter/protocol.ts';

export interface ConverterOptions {
  /** Below this all files are written, and the engine keeps what does not fit in memory. */
  readonly directory: string;
  /** Where files to merge and to survey are, besides. */
  readonly inputs?: readonly string[];
  readonly columnLimit?: number;
  readonly memoryMegabytes?: number;
  readonly threads?: number;
  /** How long a converter that has nothing to do stays. */
  readonly idleMilliseconds?: number;
  /** How long one answer may take. */
  readonly answerMilliseconds?: number;
  /** Options for Node itself, to profile it. */
  readonly parameters?: readonly string[];
}

export interface WriteRequest {
  /** The table's columns as the catalog has them. */
  readonly columns: readonly Column[];
  readonly nextColumnId: number;
  /** Whether new fields become columns and columns may widen; not so where a schema was uploaded. */
  readonly open: boolean;
  /** An existing directory for the files, of this write only; the caller removes it. */
  readonly directory: string;
}

export interface WriteOutcome {
  /** The columns of the files, in the table's order: those given, widened where they were, then new ones. */
  readonly columns: readonly Column[];
  readonly nextColumnId: number;
  /** A file for each hour of acceptance, in order. */
  readonly files: readonly WrittenFile[];
}

/** A write under way. It holds the converter until it is sealed or cancelled. */
export interface WriteJob {
  /** Resolves when more may be sent. Records go into the files in the order they are sent. */
  send(records: readonly LakeRecord[]): Promise<void>;
  /** The same with those of packed records that are meant for the lake, whose memory is given back. */
  sendPacked(records: PackedRecords): Promise<void>;
  seal(): Promise<WriteOutcome>;
  /** Gives the write up. Nothing happens when it is sealed already, or has failed. */
  cancel(): Promise<void>;
}

export interface MergeRequest {
  /** A SELECT over local files that gives these columns and then the system's. */
  readonly select: string;
  readonly columns: readonly Column[];
  readonly output: string;
}

export interface SurveyRequest {
  readonly files: readonly string[];
  /** How many of the values in `_rescued` to bring along at most. */
  readonly samples: number;
}

const answerLimit = 600_000;
const startLimit = 30_000;
const endLimit = 5_000;
const idleLimit = 30_000;

/**
 * Turns messages into Parquet files in a process of its own, which is started when there is something to
 * do and let go when there is not. One job runs at a time; others wait in order. A job whose process ends
 * under it fails with a ConverterError, and the next one gets a new process.
 */
export class Converter {
  readonly #options: ConverterOptions;
  readonly #turns = new Turns();
  readonly #answerMilliseconds: number;
  #process: ConverterProcess | undefined;
  #idle: NodeJS.Timeout | undefined;

  constructor(options: ConverterOptions) {
    this.#options = options;
    this.#answerMilliseconds = options.answerMilliseconds ?? answerLimit;
  }

  /** Begins a write. `signal` gives it up, whatever it is at. */
  async beginWrite(request: WriteRequest, signal?: AbortSignal): Promise<WriteJob> {
    const turn = await this.#turn(signal);
    const { columns, nextColumnId, open, directory } = request;
    const limit = this.#options.columnLimit ?? columnLimit;
    await turn.ask({ kind: 'begin', columns, nextColumnId, open, directory, columnLimit: limit }, 'begun');
    return new Write(turn, directory);
  }

  /** Writes what a SELECT over files gives to one file. */
  async merge(request: MergeRequest, signal?: AbortSignal): Promise<MergedFile> {
    const turn = await this.#turn(signal);
    const { file } = await turn.ask({ kind: 'merge', ...request }, 'merged');
    turn.end();
    return file;
  }

  /** What files say about their columns, and at most `samples` of what was rescued in them. */
  async survey(request: SurveyRequest, signal?: AbortSignal): Promise<Survey> {
    const turn = await this.#turn(signal);
    const { files, samples } = request;
    const { survey } = await turn.ask({ kind: 'survey', files: [...files], samples }, 'surveyed');
    turn.end();
    return survey;
  }

  /** The process that is there now, if there is one. */
  get processId(): number | undefined {
    return this.#process?.hasEnded === false ? this.#process.processId : undefined;
  }

  /** Ends what is under way and refuses what waits. */
  async close(): Promise<void> {
    this.#turns.close();
    await this.#let();
  }

  async #turn(signal: AbortSignal | undefined): Promise<Turn> {
    await this.#turns.take(signal);
    clearTimeout(this.#idle);
    try {
      signal?.throwIfAborted();
      const process = await this.#running();
      return new Turn(process, this.#answerMilliseconds, signal, () => this.#rest());
    } catch (error) {
      this.#rest();
      throw error;
    }
  }

  async #running(): Promise<ConverterProcess> {
    if (this.#process?.hasEnded === false) {
      this.#process.hold(true);
      return this.#process;
    }
    const { directory, inputs = [], memoryMegabytes = 192, threads = 1, parameters = [] } = this.#options;
    const process = new ConverterProcess(parameters);
    this.#process = process;
    const directories = [directory, ...inputs];
    const temporary = join(directory, 'temporary');
    await process.ask(
      { kind: 'open', directories, temporary, memoryMegabytes, threads },
      'opened',
      startLimit,
    );
    return process;
  }

  /** After a job: the next one, or in a while the end of the process. */
  #rest(): void {
    this.#turns.give();
    if (this.#turns.taken) return;
    this.#process?.hold(false);
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => void this.#let(), this.#options.idleMilliseconds ?? idleLimit);
    this.#idle.unref();
  }

  /** Lets the process go. */
  async #let(): Promise<void> {
    clearTimeout(this.#idle);
    const process = this.#process;
    this.#process = undefined;
    if (process === undefined || process.hasEnded) return;
    process.hold(true);
    if (this.#turns.taken) process.kill();
    else process.release();
    const timer = setTimeout(() => process.kill(), endLimit);
    await process.ended;
    clearTimeout(timer);
  }
}

/** The converter in the hands of one job. */
class Turn {
  readonly #process: ConverterProcess;
  readonly #limit: number;
  readonly #signal: AbortSignal | undefined;
  readonly #give: () => void;
  readonly #abort = (): void => this.end(true);
  #over = false;

  constructor(process: ConverterProcess, limit: number, signal: AbortSignal | undefined, give: () => void) {
    this.#process = process;
    this.#limit = limit;
    this.#signal = signal;
    this.#give = give;
    signal?.addEventListener('abort', this.#abort, { once: true });
  }

  get over(): boolean {
    return this.#over;
  }

  ask<Kind extends ConverterAnswer['kind']>(request: ConverterRequest, kind: Kind): Promise<AnswerOf<Kind>> {
    return this.#attempt(() => this.#process.ask(request, kind, this.#limit));
  }

  send(batch: Buffer): Promise<void> {
    return this.#attempt(() => this.#process.send(batch, this.#limit));
  }

  /** Gives the converter back; a process that is in the middle of something is ended first. */
  end(unfinished = false): void {
    if (this.#over) return;
    this.#over = true;
    this.#signal?.removeEventListener('abort', this.#abort);
    if (unfinished) this.#process.kill();
    void this.#afterwards(unfinished);
  }

  /** A process that was killed must be gone before the next job asks for one. */
  async #afterwards(unfinished: boolean): Promise<void> {
    if (unfinished) await this.#process.ended;
    this.#give();
  }

  async #attempt<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      if (this.#over) throw new ConverterError('The job is over.');
      return await work();
    } catch (error) {
      this.end(true);
      this.#signal?.throwIfAborted();
      throw error;
    }
  }
}

class Write implements WriteJob {
  readonly #turn: Turn;
  readonly #directory: string;
  readonly #rooms = new BatchRooms();
  #batches = 0;
  #sending: Promise<void> = Promise.resolve();

  constructor(turn: Turn, directory: string) {
    this.#turn = turn;
    this.#directory = directory;
  }

  send(records: readonly LakeRecord[]): Promise<void> {
    return this.#sendAll(batchesOf(records));
  }

  async sendPacked(records: PackedRecords): Promise<void> {
    await this.#sendAll(packedBatches(records, this.#rooms));
    records.release();
  }

  async #sendAll(batches: Iterable<Buffer>): Promise<void> {
    for (const batch of batches) {
      // One batch is on its way while the next one is made.
      await this.#sending;
      this.#batches++;
      this.#sending = this.#turn.send(batch);
      this.#sending.catch(() => {});
    }
  }

  async seal(): Promise<WriteOutcome> {
    try {
      await this.#sending;
      const answer = await this.#turn.ask({ kind: 'seal', batches: this.#batches }, 'written');
      this.#turn.end();
      return { columns: readColumns(answer.columns), nextColumnId: answer.nextColumnId, files: answer.files };
    } catch (error) {
      await this.#sweep();
      throw error;
    }
  }

  async cancel(): Promise<void> {
    if (this.#turn.over) return;
    this.#turn.end(true);
    await this.#sweep();
  }

  async #sweep(): Promise<void> {
    await rm(join(this.#directory, 'spool'), { recursive: true, force: true });
  }
}
