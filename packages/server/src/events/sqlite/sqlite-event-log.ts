import { join } from 'node:path';
import type { Clock } from '../../platform/clock.ts';
import {
  type AppendEntry,
  type AppendLimits,
  type AppendOutcome,
  type EventLog,
  EventLogFullError,
  EventLogUnavailableError,
  type EventRecord,
  type PackedRecords,
  type PartitionAddress,
  type ReadLimits,
  type TopicAddress,
} from '../events.ts';
import { AppendQueue } from './append-queue.ts';
import { AttributesReader } from './attributes.ts';
import { Notices } from './notices.ts';
import type { EncodedRecords, FromReader, FromWriter, ToReader, ToWriter, Trimmed } from './protocol.ts';
import { Questions } from './questions.ts';
import { decodeRecords, packRecords } from './records.ts';
import { Thread } from './thread.ts';

export interface SqliteEventLogOptions {
  /** Where `events.db` is or will be. It must exist. */
  readonly directory: string;
  readonly clock: Clock;
  /** The disk failed under a change: the process must end without acknowledging anything more. */
  onFatal(error: Error): void;
  readonly limits?: Partial<AppendLimits>;
  /** How long the same id is a duplicate, at least. */
  readonly deduplicationMilliseconds?: number;
}

const defaultLimits: AppendLimits = { entries: 100_000, bytes: 64 * 1024 * 1024 };
const defaultDeduplicationMilliseconds = 10 * 60_000;
const mostWaitingQuestions = 10_000;
const tickMilliseconds = 10_000;

/**
 * The event log in an SQLite file of its own, with one thread that writes and one that reads.
 *
 * Appends that arrive while a commit is under way travel together and share the next one. What one commit
 * adds to a partition is one row.
 */
export async function openSqliteEventLog(options: SqliteEventLogOptions): Promise<EventLog> {
  const log = new SqliteEventLog(options);
  await log.open();
  return log;
}

class SqliteEventLog implements EventLog {
  readonly #options: SqliteEventLogOptions;
  readonly #appends: AppendQueue;
  readonly #questions: Questions;
  readonly #trims: PromiseWithResolvers<void>[] = [];
  readonly #notices = new Notices();
  readonly #attributes = new AttributesReader();
  #writer: Thread<ToWriter, FromWriter> | undefined;
  #reader: Thread<ToReader, FromReader> | undefined;
  #ticking: NodeJS.Timeout | undefined;
  #ended: Error | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: SqliteEventLogOptions) {
    this.#options = options;
    this.#appends = new AppendQueue({ ...defaultLimits, ...options.limits }, (batch) =>
      this.#writer?.send({ kind: 'append', batch, now: options.clock.now() }, [batch.buffer]),
    );
    this.#questions = new Questions({
      limit: mostWaitingQuestions,
      send: (question) => this.#reader?.send(question),
      failed: (message) => new EventLogUnavailableError(message),
    });
  }

  async open(): Promise<void> {
    const { directory, clock } = this.#options;
    const path = join(directory, 'events.db');
    const windowMilliseconds = this.#options.deduplicationMilliseconds ?? defaultDeduplicationMilliseconds;
    const onEnd = (error: Error) => this.#end(error);
    // The file is made by the connection that writes; one that only reads cannot.
    const writing = Thread.open<ToWriter, FromWriter>({
      name: 'events-write',
      entry: new URL('./writer.ts', import.meta.url),
      open: { kind: 'open', path, windowMilliseconds, now: clock.now() },
      close: { kind: 'close' },
      hear: (message) => this.#hearWriter(message),
      onEnd,
    });
    const reading = Thread.open<ToReader, FromReader>({
      name: 'events-read',
      entry: new URL('./reader.ts', import.meta.url),
      after: writing,
      open: { kind: 'open', path },
      close: { kind: 'close' },
      hear: (message) => this.#questions.settle(message),
      onEnd,
    });
    const [writer, reader] = await Promise.allSettled([writing, reading]);
    if (writer.status === 'rejected') throw writer.reason;
    if (reader.status === 'rejected') {
      await writer.value.close();
      throw reader.reason;
    }
    this.#writer = writer.value;
    this.#reader = reader.value;
    this.#ticking = setInterval(() => this.#tick(), tickMilliseconds).unref();
    this.#tick();
  }

  append(entries: readonly AppendEntry[]): Promise<AppendOutcome[]> {
    const over = this.#over();
    if (over !== undefined) return Promise.reject(over);
    return entries.length === 0 ? Promise.resolve([]) : this.#appends.append(entries);
  }

  async read(address: PartitionAddress, after: number, limits: ReadLimits): Promise<EventRecord[]> {
    return decodeRecords(await this.#encoded(address, after, limits), this.#attributes);
  }

  async readPacked(address: PartitionAddress, after: number, limits: ReadLimits): Promise<PackedRecords> {
    return packRecords(await this.#encoded(address, after, limits), this.#attributes);
  }

  #encoded(address: PartitionAddress, after: number, limits: ReadLimits): Promise<EncodedRecords> {
    this.#refuseWhenOver();
    return this.#questions.ask({
      kind: 'read',
      address: addressOf(address),
      after,
      limits: { records: limits.records, bytes: limits.bytes },
    });
  }

  async bounds({ organizationId, topicName }: TopicAddress) {
    this.#refuseWhenOver();
    const { bounds } = await this.#questions.ask({ kind: 'bounds', topic: { organizationId, topicName } });
    return [...bounds];
  }

  async topics(organizationId?: string): Promise<TopicAddress[]> {
    this.#refuseWhenOver();
    const { topics } = await this.#questions.ask({ kind: 'topics', organizationId });
    return [...topics];
  }

  async trim(address: PartitionAddress, through: number): Promise<void> {
    this.#refuseWhenOver();
    if (this.#trims.length >= mostWaitingQuestions) {
      throw new EventLogFullError('Too many are waiting to trim the event log');
    }
    const trim = Promise.withResolvers<void>();
    this.#trims.push(trim);
    this.#writer?.send({ kind: 'trim', address: addressOf(address), through });
    await trim.promise;
  }

  async offsetAt(address: PartitionAddress, acceptedAt: number): Promise<number> {
    this.#refuseWhenOver();
    const question = { kind: 'offset-at', address: addressOf(address), acceptedAt } as const;
    return (await this.#questions.ask(question)).offset;
  }

  listen(hear: (address: PartitionAddress) => void): () => void {
    return this.#notices.listen(hear);
  }

  async check(): Promise<void> {
    this.#refuseWhenOver();
    await this.#questions.ask({ kind: 'check' });
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    clearInterval(this.#ticking);
    const trims = Promise.allSettled(this.#trims.map((trim) => trim.promise));
    await Promise.all([this.#appends.drained(), this.#questions.drained(), trims]);
    if (this.#ended === undefined) {
      // The writer last, so that it leaves everything in one file.
      await this.#reader?.close();
      await this.#writer?.close();
    } else {
      await Promise.all([this.#reader?.terminate(), this.#writer?.terminate()]);
    }
  }

  #tick(): void {
    if (this.#ended === undefined) this.#writer?.send({ kind: 'tick', now: this.#options.clock.now() });
  }

  #hearWriter(message: FromWriter): void {
    switch (message.kind) {
      case 'appended': {
        const sent = this.#appends.settle(message);
        if (sent !== undefined) this.#notices.add(sent.topics, message.partitions);
        break;
      }
      case 'append-failed':
        if (message.failure.fatal) this.#end(new Error(message.failure.message));
        else this.#appends.refuse(new EventLogUnavailableError(message.failure.message));
        break;
      case 'trimmed':
        this.#settleTrim(message);
        break;
      case 'fatal':
        this.#end(new Error(message.failure.message));
        break;
    }
  }

  #settleTrim({ failure }: Trimmed): void {
    if (failure?.fatal) this.#end(new Error(failure.message));
    const trim = this.#trims.shift();
    if (failure === undefined) trim?.resolve();
    else trim?.reject(new EventLogUnavailableError(failure.message));
  }

  #refuseWhenOver(): void {
    const over = this.#over();
    if (over !== undefined) throw over;
  }

  #over(): Error | undefined {
    if (this.#ended !== undefined) return unavailable(this.#ended);
    return this.#closing && new EventLogUnavailableError('The event log is closed');
  }

  /** From here on nothing is acknowledged. The process is told first, so that it can end before any answer. */
  #end(error: Error): void {
    if (this.#ended !== undefined) return;
    this.#ended = error;
    this.#options.onFatal(error);
    this.#appends.refuseAll(unavailable(error));
    this.#questions.refuseAll(unavailable(error));
    for (const trim of this.#trims.splice(0)) trim.reject(unavailable(error));
  }
}

function unavailable(cause: Error): EventLogUnavailableError {
  return new EventLogUnavailableError(`The event log has failed: ${cause.message}`, { cause });
}

/** Only what belongs to an address travels, whatever else the object carries. */
function addressOf({ organizationId, topicName, partition }: PartitionAddress): PartitionAddress {
  return { organizationId, topicName, partition };
}
