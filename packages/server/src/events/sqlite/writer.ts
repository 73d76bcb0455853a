/** The entry of the thread that holds the connection that writes. */
import { type MessagePort, parentPort, receiveMessageOnPort } from 'node:worker_threads';
import type { EncodedBatch } from './batch.ts';
import { EventWriter, type Trim } from './event-writer.ts';
import { type Failure, messageOf, writeFailure } from './failure.ts';
import type { FromWriter, ToWriter } from './protocol.ts';

/** How much one transaction takes, so that nobody waits for a commit without end. */
const transactionBytes = 8 * 1024 * 1024;
/** Under load, some tidying is done after so many transactions. */
const transactionsBetweenTidying = 8;

/**
 * Carries out what is asked, each time all that came while the last transaction was on its way in one, so
 * that many share a sync and nobody waits for a timer.
 */
class WriterLoop {
  readonly #port: MessagePort;
  readonly #writer: EventWriter;
  readonly #appends: { readonly batch: EncodedBatch; readonly now: number }[] = [];
  readonly #trims: Trim[] = [];
  #closing = false;
  #transactionsSinceTidying = 0;
  /** Why tidying waits for the next request: there may be no space even for writing that there is more. */
  #tidyFailure: Failure | undefined;
  /** Once the disk has failed, nothing is tried again: a second sync would claim what the first could not. */
  #dead: Failure | undefined;

  constructor(port: MessagePort, writer: EventWriter) {
    this.#port = port;
    this.#writer = writer;
  }

  hear(message: ToWriter): void {
    this.#tidyFailure = undefined;
    this.#accept(message);
    this.#acceptWaiting();
    while (this.#isAsked() || this.#mayTidy()) {
      if (!this.#isAsked() || this.#transactionsSinceTidying >= transactionsBetweenTidying) this.#tidy();
      if (this.#appends.length > 0) this.#append();
      if (this.#trims.length > 0) this.#trim();
      this.#acceptWaiting();
    }
    if (!this.#closing) return;
    if (this.#dead === undefined) this.#writer.close();
    this.#port.close();
  }

  #accept(message: ToWriter): void {
    if (message.kind === 'append') this.#appends.push(message);
    else if (message.kind === 'trim') this.#trims.push(message);
    else if (message.kind === 'tick') this.#writer.tellTime(message.now);
    else if (message.kind === 'close') this.#closing = true;
  }

  #acceptWaiting(): void {
    for (let next = receiveMessageOnPort(this.#port); next; next = receiveMessageOnPort(this.#port)) {
      this.#accept(next.message);
    }
  }

  #isAsked(): boolean {
    return this.#appends.length > 0 || this.#trims.length > 0;
  }

  #mayTidy(): boolean {
    return !this.#closing && !this.#dead && !this.#tidyFailure && !this.#writer.isTidy();
  }

  #append(): void {
    let bytes = 0;
    let count = 0;
    for (const { batch } of this.#appends) {
      if (count > 0 && bytes + batch.length > transactionBytes) break;
      bytes += batch.length;
      count += 1;
    }
    const group = this.#appends.splice(0, count);
    const batches = group.map(({ batch }) => batch);
    const now = Math.max(...group.map((append) => append.now));
    const failure = this.#attempt(() => {
      const placed = this.#writer.append(batches, now);
      placed.forEach(({ offsets, partitions }, index) => {
        const buffer = batches[index]?.buffer ?? new ArrayBuffer(0);
        this.#send({ kind: 'appended', offsets, partitions, buffer }, [offsets.buffer, buffer]);
      });
    });
    if (failure !== undefined) for (const _ of group) this.#send({ kind: 'append-failed', failure });
  }

  #trim(): void {
    const group = this.#trims.splice(0);
    const failure = this.#attempt(() => this.#writer.trim(group));
    for (const _ of group) this.#send({ kind: 'trimmed', ...(failure && { failure }) });
  }

  #tidy(): void {
    this.#transactionsSinceTidying = 0;
    if (!this.#mayTidy()) return;
    this.#tidyFailure = this.#attempt(() => this.#writer.tidy());
    if (this.#dead !== undefined) this.#send({ kind: 'fatal', failure: this.#dead });
  }

  #attempt(write: () => void): Failure | undefined {
    if (this.#dead !== undefined) return this.#dead;
    this.#transactionsSinceTidying += 1;
    try {
      write();
      return undefined;
    } catch (error) {
      const failure = writeFailure(error);
      if (failure.fatal) this.#dead = failure;
      return failure;
    }
  }

  #send(message: FromWriter, transfer: ArrayBuffer[] = []): void {
    this.#port.postMessage(message, transfer);
  }
}

function serve(port: MessagePort): void {
  port.once('message', (first: ToWriter) => {
    if (first.kind !== 'open') throw new Error('The event log is not open yet');
    try {
      const loop = new WriterLoop(port, new EventWriter(first));
      port.on('message', (message: ToWriter) => loop.hear(message));
      port.postMessage({ kind: 'opened' });
    } catch (error) {
      port.postMessage({ kind: 'refused', message: messageOf(error) });
    }
  });
}

if (parentPort === null) throw new Error('This file is the entry of a worker thread');
serve(parentPort);
