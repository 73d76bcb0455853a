import { createReadStream } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { TopicAddress } from '../events/events.ts';
import type { ObjectStore } from '../objects/objects.ts';
import type { Clock } from '../platform/clock.ts';
import type { Log } from '../platform/log.ts';
import { type Random, randomId } from '../platform/random.ts';
import type { Topics } from '../topics/topics.ts';
import { type Catalog, type CrowdedHour, type LakeFile, smallBytes } from './catalog.ts';
import { type Column, nestedColumns } from './columns.ts';
import type { Converter } from './converter.ts';
import { hourMilliseconds, newFileKey, objectKeyOf } from './keys.ts';
import type { LocalFiles } from './local-files.ts';
import { scannedFile, scanSql } from './scan.ts';

export interface CompactionParts {
  readonly catalog: Catalog;
  readonly topics: Topics;
  readonly objects: ObjectStore;
  readonly converter: Converter;
  readonly localFiles: LocalFiles;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly scratchDirectory: string;
  /** Whether it is this node that merges the files of a topic: otherwise several would do the same work. */
  readonly isKeeper: (topic: TopicAddress) => Promise<boolean>;
}

const hoursAtOnce = 100;
const filesAtOnce = 200;
const mergedBytes = 4 * smallBytes;
/** Files of an hour that still goes on are merged only when there are so many, so that few bytes move often. */
const manyFiles = 10;
/** After its end an hour gets the files of what was accepted at its very end. */
const settleMilliseconds = 5 * 60_000;

/**
 * Merges the small files of an hour into one. A merge loses nothing: only files are merged whose columns
 * are all in the new one with the same types. The row of the new file comes, and those of the old ones go,
 * in one transaction, so whoever asks the catalog for files gets every row once; whoever has asked before
 * finds the old files for another hour.
 */
export class Compaction {
  readonly #parts: CompactionParts;

  constructor(parts: CompactionParts) {
    this.#parts = parts;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { catalog, clock } = this.#parts;
    const over = clock.now() - hourMilliseconds - settleMilliseconds;
    const spans = [
      { from: 0, below: over, least: 2, isOver: true },
      { from: over, below: Number.MAX_SAFE_INTEGER, least: manyFiles, isOver: false },
    ];
    for (const { isOver, ...span } of spans) {
      for (const crowded of await catalog.crowdedHours({ ...span, limit: hoursAtOnce })) {
        if (signal.aborted) return;
        if (await this.#parts.isKeeper(crowded)) await this.#mergeHour(crowded, isOver, signal);
      }
    }
  }

  async #mergeHour(crowded: CrowdedHour, isOver: boolean, signal: AbortSignal): Promise<void> {
    const { catalog, topics, log } = this.#parts;
    const files = await catalog.smallFiles(crowded, crowded.hour, filesAtOnce);
    const layouts = await catalog.layouts(crowded, [...new Set(files.map((file) => file.layoutId))]);
    const deletedAt = (await topics.get(crowded.organizationId)).deleted.get(crowded.topicName);
    for (const group of mergeable(files, layouts, deletedAt)) {
      const some = cut(group.files);
      if (some.length >= (isOver ? 2 : manyFiles)) {
        const outcome = await this.#merge(crowded, some, group.columns, layouts, signal);
        log.debug({ event: 'lake.merged', ...crowded, merged: some.length, outcome }, 'files were merged');
      } else if (isOver && files.length < filesAtOnce) {
        // There is nothing left to merge them with, and they should not be looked at for ever.
        await catalog.settleFiles(
          crowded,
          group.files.map((file) => file.key),
        );
      }
    }
  }

  async #merge(
    topic: CrowdedHour,
    files: readonly LakeFile[],
    columns: readonly Column[],
    layouts: ReadonlyMap<string, readonly Column[]>,
    signal: AbortSignal,
  ): Promise<'merged' | 'outrun'> {
    const { catalog, objects, converter, localFiles, clock, random, scratchDirectory } = this.#parts;
    const directory = join(scratchDirectory, randomId(random));
    const { release } = await localFiles.provide(files, signal);
    try {
      await mkdir(directory, { recursive: true });
      const output = join(directory, 'merged.parquet');
      const select = scanSql(
        columns,
        files.map((file) => scannedFile(file, layouts, localFiles.pathOf(file.key))),
      );
      const { rows, bytes, rescued } = await converter.merge({ select, columns, output }, signal);
      const expected = files.reduce((sum, file) => sum + file.rows, 0);
      if (rows !== expected) throw new Error(`A merge of ${expected} rows has ${rows}.`);
      const name = await catalog.organizationName(topic.organizationId);
      if (name === undefined) throw new Error('The organization of the topic is gone.');
      const key = newFileKey(name, topic.topicName, topic.hour, random);
      await objects.put(objectKeyOf(key), createReadStream(output), { contentLength: bytes, signal });
      const isDone = await catalog.replaceFiles(topic, {
        inputs: files.map((file) => file.key),
        output: {
          key,
          hour: topic.hour,
          rows,
          bytes,
          rescued,
          minIngestedAt: Math.min(...files.map((file) => file.minIngestedAt)),
          maxIngestedAt: Math.max(...files.map((file) => file.maxIngestedAt)),
        },
        columns,
        at: clock.now(),
      });
      if (!isDone) await objects.delete(objectKeyOf(key));
      return isDone ? 'merged' : 'outrun';
    } finally {
      release();
      await rm(directory, { recursive: true, force: true });
    }
  }
}

interface MergeGroup {
  readonly columns: readonly Column[];
  readonly files: LakeFile[];
}

/** Files that can be one file without loss, the layout with the most columns first. */
export function mergeable(
  files: readonly LakeFile[],
  layouts: ReadonlyMap<string, readonly Column[]>,
  deletedAt: number | undefined,
): MergeGroup[] {
  const groups: (MergeGroup & { readonly isDeleted: boolean })[] = [];
  const widestFirst = files.toSorted(
    (one, other) => (layouts.get(other.layoutId)?.length ?? 0) - (layouts.get(one.layoutId)?.length ?? 0),
  );
  for (const file of widestFirst) {
    const columns = layouts.get(file.layoutId);
    if (columns === undefined) continue;
    // What a topic had when it was deleted goes; what came after stays. They are not mixed.
    const isDeleted = deletedAt !== undefined && file.minIngestedAt <= deletedAt;
    const group = groups.find((each) => each.isDeleted === isDeleted && contains(each.columns, columns));
    if (group === undefined) groups.push({ columns, files: [file], isDeleted });
    else group.files.push(file);
  }
  return groups;
}

/** Whether every one of these columns is among the others with the same id, name and type. */
function contains(wide: readonly Column[], narrow: readonly Column[]): boolean {
  if (wide === narrow) return true;
  const byId = new Map(wide.map((column) => [column.id, column]));
  return narrow.every((column) => {
    const match = byId.get(column.id);
    if (match === undefined || match.name !== column.name || match.type.kind !== column.type.kind)
      return false;
    return contains(nestedColumns(match.type), nestedColumns(column.type));
  });
}

/** As many as make a file of a good size. They come smallest first. */
function cut(files: readonly LakeFile[]): LakeFile[] {
  const smallestFirst = files.toSorted((one, other) => one.bytes - other.bytes);
  let bytes = 0;
  return smallestFirst.filter((file) => {
    bytes += file.bytes;
    return bytes <= mergedBytes;
  });
}
