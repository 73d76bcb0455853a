import { stat } from 'node:fs/promises';
import { MillraceError, type PublisherTotals } from '@millrace/client';
import { amountOf } from '../amount.ts';
import { CommandError, type Invocation, UsageError } from '../command.ts';
import { progressBar } from '../progress.ts';
import { openRecords, type RecordFormat } from '../records.ts';
import { safeJson } from '../safe-text.ts';

const mostShown = 10;

function delimiterOf(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  if (text === 'tab') return '\t';
  if ([...text].length === 1 && !/["\r\n]/.test(text)) return text;
  throw new UsageError(`--delimiter is one character, or tab, not "${text}".`);
}

function formatOf(text: string | undefined): RecordFormat | undefined {
  if (text === undefined || text === 'csv' || text === 'ndjson') return text;
  throw new UsageError(`--format is ndjson or csv, not "${text}".`);
}

async function publishOne(invocation: Invocation, message: string): Promise<void> {
  const { arguments: given, options, output, signal } = invocation;
  const key = options.text('message-key');
  if (key === undefined) throw new UsageError('A single message needs --message-key.');
  const { topics } = await invocation.client();
  const id = options.text('message-id');
  const mediaType = 'application/json';
  const answer = await topics.publish(given.text('topic'), message, { key, id, mediaType, signal });
  output.value(answer, () => `${answer.messageId}${answer.duplicate ? '  duplicate' : ''}`);
}

/** Publishes a message, or a file of them. */
export async function publish(invocation: Invocation): Promise<void> {
  const { arguments: given, options, output, signal } = invocation;
  const message = options.text('message');
  if (message !== undefined) return publishOne(invocation, message);
  const { topics } = await invocation.client();
  const name = given.text('topic');
  const keyPath = options.text('key');
  const idPath = options.text('id');
  const named = options.text('file');
  const file = named === '-' ? undefined : named;
  if (file === undefined && process.stdin.isTTY === true)
    output.note('Reading messages from the terminal, one JSON object a line; end with ctrl-D.');
  const size = file === undefined ? undefined : await sizeOf(file);
  const source = openRecords(file, {
    format: formatOf(options.text('format')),
    delimiter: delimiterOf(options.text('delimiter')),
    asText: options.flag('text'),
    signal,
  });
  let shown = 0;
  let read = 0;
  const bar = progressBar(output, `publishing to ${name}`);
  const publisher = topics.publisher(name, {
    ...(keyPath === undefined ? {} : { keyPath }),
    ...(idPath === undefined ? {} : { idPath }),
    // One request at a time, so that the order of the file is the order of each key.
    concurrency: 1,
    stopOnFailure: true,
    batchSize: 5_000,
    mostPending: 20_000,
    onRejected: ({ index, code, detail }) => {
      shown += 1;
      if (shown <= mostShown) output.note(`record ${index + 1} rejected: ${detail} (${code})`);
    },
    onProgress: ({ accepted, duplicates, rejected }) => {
      // How many there are is not known; how far the file is read tells it well enough.
      const total = size === undefined || source.bytes() === 0 ? undefined : (read * size) / source.bytes();
      bar.update(accepted + duplicates + rejected, total);
    },
  });
  const started = performance.now();
  const summarize = (begin: string, { accepted, duplicates, rejected }: PublisherTotals) => {
    const seconds = (performance.now() - started) / 1000;
    const rate = Math.round(accepted / Math.max(seconds, 0.001)).toLocaleString('en-US');
    const others = [
      ...(duplicates > 0 ? [amountOf(duplicates, 'duplicate')] : []),
      ...(rejected > 0 ? [`${rejected.toLocaleString('en-US')} rejected`] : []),
    ];
    bar.end(
      `${begin} ${amountOf(accepted, 'message')} to ${name} in ${seconds.toFixed(1)} s (${rate}/s)${others.map((other) => `, ${other}`).join('')}.`,
    );
    if (output.json) output.line(safeJson({ accepted, duplicates, rejected }));
  };
  try {
    for await (const line of source.lines()) {
      read += 1;
      await publisher.publishLine(line);
    }
    signal.throwIfAborted();
    const ended = new Promise<never>((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
    const totals = await Promise.race([publisher.flush(), ended]);
    summarize('Published', totals);
    if (totals.rejected > 0)
      throw new CommandError(
        `${amountOf(totals.rejected, 'message')} ${totals.rejected === 1 ? 'was' : 'were'} rejected.`,
      );
  } catch (error) {
    if (error instanceof CommandError && publisher.totals.rejected > 0 && !signal.aborted) throw error;
    // What is on its way is waited for: then it is known what was published, and nothing is half done.
    const totals = await publisher.abandon();
    const isCertain = !(error instanceof MillraceError && error.status === 0);
    summarize(isCertain ? 'Stopped after publishing' : 'Stopped after publishing at least', totals);
    if (idPath !== undefined) output.note('Run it again to go on: what was published is known by its id.');
    throw error;
  } finally {
    bar.end();
  }
}

async function sizeOf(file: string): Promise<number> {
  const found = await stat(file).catch((error: Error) => {
    throw new CommandError(`${file} cannot be read: ${error.message}`);
  });
  if (found.isDirectory()) throw new CommandError(`${file} is a folder.`);
  return found.size;
}
