import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';

/**
 * What the server and the converter say to each other over the channel that Node opens between them. One
 * job runs at a time; every request has exactly one answer. The records of a write go over a pipe of their
 * own (frames.ts), between `begun` and `seal`, which says how many batches there were.
 */
const request = Type.Union([
  Type.Object({
    kind: Type.Literal('open'),
    /** Where files may be read and written; everything else is refused by the engine. */
    directories: Type.Array(Type.String()),
    /** Where the engine puts what does not fit in memory. */
    temporary: Type.String(),
    memoryMegabytes: Type.Integer(),
    threads: Type.Integer(),
  }),
  Type.Object({
    kind: Type.Literal('begin'),
    columns: Type.Unknown(),
    nextColumnId: Type.Integer(),
    open: Type.Boolean(),
    columnLimit: Type.Integer(),
    directory: Type.String(),
  }),
  Type.Object({ kind: Type.Literal('seal'), batches: Type.Integer() }),
  Type.Object({
    kind: Type.Literal('merge'),
    select: Type.String(),
    columns: Type.Unknown(),
    output: Type.String(),
  }),
  Type.Object({
    kind: Type.Literal('survey'),
    files: Type.Array(Type.String()),
    samples: Type.Integer(),
  }),
]);

const writtenFile = Type.Object({
  /** The beginning of the hour of acceptance, in milliseconds since the epoch. */
  hour: Type.Integer(),
  path: Type.String(),
  rows: Type.Integer(),
  bytes: Type.Integer(),
  /** Rows of which something stands in `_rescued`. */
  rescued: Type.Integer(),
  minIngestedAt: Type.Integer(),
  maxIngestedAt: Type.Integer(),
});

const mergedFile = Type.Object({
  rows: Type.Integer(),
  bytes: Type.Integer(),
  rescued: Type.Integer(),
  /** Null when there are no rows. */
  minIngestedAt: Type.Union([Type.Integer(), Type.Null()]),
  maxIngestedAt: Type.Union([Type.Integer(), Type.Null()]),
});

const columnSurvey = Type.Object({
  /** The field id of a column that has values itself: not of a struct, but of its fields. */
  id: Type.Integer(),
  values: Type.Integer(),
  nulls: Type.Integer(),
  /** As text; null where the files do not say. */
  minimum: Type.Union([Type.String(), Type.Null()]),
  maximum: Type.Union([Type.String(), Type.Null()]),
});

const survey = Type.Object({
  rows: Type.Integer(),
  columns: Type.Array(columnSurvey),
  /** JSON of some of what stands in `_rescued`. */
  rescued: Type.Array(Type.String()),
});

const answer = Type.Union([
  Type.Object({ kind: Type.Literal('opened') }),
  Type.Object({ kind: Type.Literal('begun') }),
  Type.Object({
    kind: Type.Literal('written'),
    columns: Type.Unknown(),
    nextColumnId: Type.Integer(),
    files: Type.Array(writtenFile),
  }),
  Type.Object({ kind: Type.Literal('merged'), file: mergedFile }),
  Type.Object({ kind: Type.Literal('surveyed'), survey }),
  Type.Object({ kind: Type.Literal('failed'), message: Type.String() }),
]);

export type ConverterRequest = Static<typeof request>;
export type ConverterAnswer = Static<typeof answer>;
export type WrittenFile = Static<typeof writtenFile>;
export type MergedFile = Static<typeof mergedFile>;
export type ColumnSurvey = Static<typeof columnSurvey>;
export type Survey = Static<typeof survey>;

const requests = Compile(request);
const answers = Compile(answer);

export function readRequest(value: unknown): ConverterRequest {
  if (!requests.Check(value))
    throw new TypeError('The server said something that the converter does not know.');
  return value;
}

export function readAnswer(value: unknown): ConverterAnswer {
  if (!answers.Check(value))
    throw new TypeError('The converter said something that the server does not know.');
  return value;
}

/** The descriptor in the converter that the records come through. */
export const recordsDescriptor = 4;
