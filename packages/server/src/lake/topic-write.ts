import { createReadStream } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { RangeMove, RangeRegistration } from '../consumers/ranges.ts';
import type { EventLog, EventRecord, TopicAddress } from '../events/events.ts';
import type { ObjectStore } from '../objects/objects.ts';
import type { Clock } from '../platform/clock.ts';
import type { Log } from '../platform/log.ts';
import { type Random, randomId } from '../platform/random.ts';
import { type Catalog, type LakeTable, type NewFile, TableChangedError } from './catalog.ts';
import type { Converter, WriteJob, WriteOutcome } from './converter.ts';
import { newFileKey, objectKeyOf } from './keys.ts';
import { type RangeLimits, RangeReader } from './range-reader.ts';
import { newTable } from './table-store.ts';

export interface WriteLimits extends RangeLimits {
  /** Keeps the messages whole in `_rescued` instead of taking them apart. */
  readonly asIs: boolean;
}

/** Writes some of what a topic has pending on this node. */
export type TopicWrite = (
  topic: TopicAddress,
  registration: RangeRegistration,
  limits: WriteLimits,
  signal: AbortSignal,
) => Promise<WriteResult>;

export interface TopicWriteParts {
  readonly catalog: Catalog;
  readonly events: EventLog;
  readonly objects: ObjectStore;
  readonly converter: Pick<Converter, 'beginWrite'>;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly scratchDirectory: string;
}

/**
 * Whether there is more to write. When a share of it went to another node meanwhile nothing was written, and
 * what is left here is to be written again.
 */
export type WriteResult = 'done' | 'more' | 'lost';

/** The converter failed on these messages, or because of them. */
export class ConversionError extends Error {
  override readonly name = 'ConversionError';
  /** How many records were to be converted. */
  readonly records: number;

  constructor(records: number, cause: unknown) {
    super('The converter failed.', { cause });
    this.records = records;
  }
}

/** Nodes that find new columns at the same time do it again; each time one of them gets through. */
const mostTries = 10;
/** Well before the sweep would take files for orphans that wait for their rows. */
const mostMilliseconds = 30 * 60_000;

/**
 * One write: the records go from the log through the converter into files, the files into the object store,
 * and then their rows and the moved cursors into the database in one transaction. Until that everything can
 * be done again, and what was stored without a row is swept later; after it everything is done.
 */
export function topicWrite(parts: TopicWriteParts): TopicWrite {
  return async (topic, registration, limits, signal) => {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await writeOnce(parts, topic, registration, limits, signal);
      } catch (error) {
        if (!(error instanceof TableChangedError) || attempt === mostTries) throw error;
      }
    }
  };
}

async function writeOnce(
  parts: TopicWriteParts,
  topic: TopicAddress,
  registration: RangeRegistration,
  limits: WriteLimits,
  signal: AbortSignal,
): Promise<WriteResult> {
  const { catalog, events } = parts;
  const bounds = await events.bounds(topic);
  const reader = new RangeReader(events, registration.held(topic.topicName), bounds, {
    ...limits,
    oneByOne: limits.asIs,
  });
  if (reader.isEmpty) return 'done';
  const base = (await catalog.table(topic)) ?? newTable(topic);
  const directory = join(parts.scratchDirectory, randomId(parts.random));
  try {
    const written = await convert(parts, reader, { base, directory, limits, signal });
    const outcome = await publish(parts, { topic, registration, base, written, moves: reader.moves, signal });
    if (outcome === 'lost') return 'lost';
    return reader.hasMore ? 'more' : 'done';
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

interface Conversion {
  readonly base: LakeTable;
  readonly directory: string;
  readonly limits: WriteLimits;
  readonly signal: AbortSignal;
}

/** The files of what was read; undefined when nothing of it is meant for the lake. */
async function convert(
  { converter }: TopicWriteParts,
  reader: RangeReader,
  { base, directory, limits, signal }: Conversion,
): Promise<WriteOutcome | undefined> {
  let job: WriteJob | undefined;
  const faults = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work;
    } catch (error) {
      throw new ConversionError(reader.records, error);
    }
  };
  try {
    for await (const part of reader.parts(signal)) {
      const selected = 'records' in part ? part.records.filter((record) => record.routes.lake) : undefined;
      if (selected?.length === 0 || ('packed' in part && !part.packed.routes.some(({ lake }) => lake)))
        continue;
      if (job === undefined) {
        const { columns, nextColumnId, fixed } = base;
        await mkdir(directory, { recursive: true });
        const request = { columns, nextColumnId, open: !fixed, directory };
        job = await faults(converter.beginWrite(request, signal));
      }
      if ('packed' in part) await faults(job.sendPacked(part.packed));
      else if (selected !== undefined) await faults(job.send(limits.asIs ? selected.map(asText) : selected));
    }
    return job === undefined ? undefined : await faults(job.seal());
  } catch (error) {
    await job?.cancel();
    throw error;
  }
}

/** The message as a JSON text, which is no object: the converter keeps it in `_rescued` as it is. */
function asText(record: EventRecord): EventRecord {
  return { ...record, body: Buffer.from(JSON.stringify(Buffer.from(record.body).toString('utf8'))) };
}

interface Publication {
  readonly topic: TopicAddress;
  readonly registration: RangeRegistration;
  readonly base: LakeTable;
  readonly written: WriteOutcome | undefined;
  readonly moves: readonly RangeMove[];
  readonly signal: AbortSignal;
}

async function publish(
  parts: TopicWriteParts,
  { topic, registration, base, written, moves, signal }: Publication,
): Promise<'moved' | 'lost'> {
  if (written === undefined) return registration.advance(moves, async () => {});
  const { catalog, objects, clock } = parts;
  const startedAt = performance.now();
  const files = await storeFiles(parts, topic, written, signal);
  if (performance.now() - startedAt > mostMilliseconds) throw new Error('Storing the files took too long.');
  const { columns, nextColumnId } = written;
  const at = clock.now();
  try {
    return await registration.advance(moves, (transaction) =>
      catalog.addFiles(transaction, topic, { base, columns, nextColumnId, files, at }),
    );
  } catch (error) {
    if (error instanceof TableChangedError) {
      for (const { key } of files) await objects.delete(objectKeyOf(key));
    }
    throw error;
  }
}

async function storeFiles(
  { catalog, objects, random }: TopicWriteParts,
  topic: TopicAddress,
  written: WriteOutcome,
  signal: AbortSignal,
): Promise<NewFile[]> {
  const name = await catalog.organizationName(topic.organizationId);
  if (name === undefined) throw new Error('The organization of the topic is gone.');
  const files: NewFile[] = [];
  for (const { path, ...file } of written.files) {
    const key = newFileKey(name, topic.topicName, file.hour, random);
    await objects.put(objectKeyOf(key), createReadStream(path), { contentLength: file.bytes, signal });
    files.push({ ...file, key });
  }
  return files;
}
