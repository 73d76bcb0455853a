import type { TopicAddress } from '../events/events.ts';
import type { Clock } from '../platform/clock.ts';
import { type Problem, problem } from '../platform/problem.ts';
import type { Catalog, LakeFile, SchemaVersion, Snapshot } from './catalog.ts';
import { withIds } from './column-changes.ts';
import type { Converter } from './converter.ts';
import { infer, type ValueCounts } from './inference.ts';
import { readJsonSchema } from './json-schema.ts';
import type { LocalFiles } from './local-files.ts';
import { writeJsonSchema } from './schema-text.ts';
import { newTable } from './table-store.ts';

export interface SchemaParts {
  readonly catalog: Catalog;
  readonly converter: Converter;
  readonly localFiles: LocalFiles;
  readonly clock: Clock;
}

/** Others change the table now and then: a writer that finds a new field, another caller. */
const mostTries = 20;
const filesAtOnce = 200;
const mostSamples = 2_000;

/** The schemas of topics. Every version is kept; none of them rewrites a file. */
export class LakeSchemas {
  readonly #parts: SchemaParts;

  constructor(parts: SchemaParts) {
    this.#parts = parts;
  }

  async read(topic: TopicAddress): Promise<SchemaVersion | undefined> {
    return this.#parts.catalog.schema(topic);
  }

  /** Fixes the columns of the table: these, in this order, and whatever else comes is rescued. */
  async upload(topic: TopicAddress, text: string): Promise<'changed' | 'same' | Problem> {
    const { catalog, clock } = this.#parts;
    const reading = await readJsonSchema(text);
    if ('refusal' in reading) return problem('SCHEMA_INVALID', reading.refusal);
    for (let attempt = 0; attempt < mostTries; attempt += 1) {
      const base = (await catalog.table(topic)) ?? newTable(topic);
      const last = await catalog.schema(topic);
      if (last?.origin === 'uploaded' && isSameDocument(last.schema, text)) return 'same';
      const { columns, nextColumnId } = withIds(reading.columns, base.columns, base.nextColumnId);
      const isChanged = await catalog.changeTable(topic, {
        base,
        columns,
        nextColumnId,
        fixed: true,
        schema: { text, origin: 'uploaded' },
        at: clock.now(),
      });
      if (isChanged) return 'changed';
    }
    return busy();
  }

  /** Makes the table and its schema what the files say. New fields become columns again. */
  async recalculate(topic: TopicAddress, signal: AbortSignal): Promise<string | Problem> {
    const { catalog, clock } = this.#parts;
    for (let attempt = 0; attempt < mostTries; attempt += 1) {
      const snapshot = (await catalog.snapshot(topic)) ?? {
        table: newTable(topic),
        files: [],
        layouts: new Map(),
      };
      const evidence = await this.#survey(snapshot, signal);
      const { columns, nextColumnId, isNullable } = infer({ ...snapshot, ...evidence });
      const text = writeJsonSchema(columns, isNullable);
      const last = await catalog.schema(topic);
      const isNew = last?.origin !== 'inferred' || last.schema !== text;
      const isChanged = await catalog.changeTable(topic, {
        base: snapshot.table,
        columns,
        nextColumnId,
        fixed: false,
        schema: isNew ? { text, origin: 'inferred' } : undefined,
        at: clock.now(),
      });
      if (isChanged) return text;
    }
    return busy();
  }

  /** What the statistics of all files say, and a sample of what was rescued. */
  async #survey({ files }: Snapshot, signal: AbortSignal) {
    const { converter, localFiles } = this.#parts;
    const counts = new Map<number, ValueCounts>();
    const rescued: string[] = [];
    let rows = 0;
    for (let start = 0; start < files.length; start += filesAtOnce) {
      signal.throwIfAborted();
      const some = files.slice(start, start + filesAtOnce);
      const { release } = await localFiles.provide(some, signal);
      try {
        const samples = samplesOf(some, files);
        const survey = await converter.survey({
          files: some.map(({ key }) => localFiles.pathOf(key)),
          samples,
        });
        rows += survey.rows;
        for (const { id, values, nulls } of survey.columns) {
          const before = counts.get(id) ?? { values: 0, nulls: 0 };
          counts.set(id, { values: before.values + values, nulls: before.nulls + nulls });
        }
        rescued.push(...survey.rescued);
      } finally {
        release();
      }
    }
    return { counts, rows, rescued };
  }
}

/** The part of the sample that some of the files have in it, by their rescued rows. */
function samplesOf(some: readonly LakeFile[], all: readonly LakeFile[]): number {
  const rescuedOf = (files: readonly LakeFile[]) => files.reduce((sum, file) => sum + file.rescued, 0);
  const total = rescuedOf(all);
  return total === 0 ? 0 : Math.ceil((mostSamples * rescuedOf(some)) / total);
}

function isSameDocument(one: string, other: string): boolean {
  return JSON.stringify(JSON.parse(one)) === JSON.stringify(JSON.parse(other));
}

function busy(): Problem {
  return problem('OVERLOADED', 'The table changes all the time. Try again in a moment.', {
    retryAfterSeconds: 1,
  });
}
