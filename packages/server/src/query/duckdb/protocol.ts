import Type, { type Static } from 'typebox';

/**
 * What the server and the children with DuckDB say to each other, over the channel that Node gives a child.
 * A request has a number, and its one answer carries the same number. Children know only the types of this
 * file; the schemas are for the server, which checks what a child that ran foreign SQL says.
 */

/** To the parser: what is this text? */
export interface InspectRequest {
  readonly kind: 'inspect';
  readonly id: number;
  readonly sql: string;
}

/** To a runner: which part of each table does this statement read? */
export interface PlanRequest {
  readonly kind: 'plan';
  readonly id: number;
  readonly sql: string;
  readonly tables: readonly {
    readonly name: string;
    readonly columns: readonly { readonly name: string; readonly type: string }[];
  }[];
}

/** To a runner: run this and leave the result in a folder of its scratch directory. */
export interface RunRequest {
  readonly kind: 'run';
  readonly id: number;
  readonly sql: string;
  /** The tables there are, each with the SELECT that reads it. */
  readonly views: readonly { readonly name: string; readonly sql: string }[];
  /** The name of the folder. */
  readonly folder: string;
}

/** To a runner: stop what you are doing. It has no answer of its own. */
export interface InterruptRequest {
  readonly kind: 'interrupt';
}

export type ParserRequest = InspectRequest;
export type RunnerRequest = PlanRequest | RunRequest | InterruptRequest;

/** What a runner is started with. */
export interface RunnerOptions {
  /** The name under which the organization's tables are found. */
  readonly databaseName: string;
  readonly scratch: string;
  readonly memoryBytes: number;
  readonly threads: number;
  readonly temporaryBytes: number;
  readonly resultBytes: number;
}

const id = Type.Integer();
const count = Type.Integer({ minimum: 0 });

const TableUse = Type.Object({
  catalog: Type.String(),
  schema: Type.String(),
  name: Type.String(),
  /** In bytes from the begin of the statement. */
  position: count,
});

export const InspectAnswer = Type.Union([
  Type.Object({
    kind: Type.Literal('statement'),
    id,
    tables: Type.Array(TableUse),
    /** Names that the statement itself gives to parts of it. */
    commonNames: Type.Array(Type.String()),
    /** It asks which tables there are. */
    listsTables: Type.Boolean(),
    namesIngestedAt: Type.Boolean(),
  }),
  Type.Object({
    kind: Type.Literal('refused'),
    id,
    reason: Type.String(),
    position: Type.Optional(count),
  }),
]);
export type InspectAnswer = Static<typeof InspectAnswer>;

const Failed = Type.Object({
  kind: Type.Literal('failed'),
  id,
  /** What DuckDB calls it, such as Binder or Conversion. */
  type: Type.String(),
  message: Type.String(),
  position: Type.Optional(count),
});
export type Failure = Static<typeof Failed>;

const Planned = Type.Object({
  kind: Type.Literal('planned'),
  id,
  /** The plan as EXPLAIN gives it, in JSON; empty when there is none. */
  plan: Type.String(),
});

const Ran = Type.Object({
  kind: Type.Literal('ran'),
  id,
  columns: Type.Array(Type.Object({ name: Type.String(), distinctName: Type.String(), type: Type.String() })),
  rows: count,
  bytesScanned: count,
  milliseconds: Type.Number({ minimum: 0 }),
});

export const RunnerAnswer = Type.Union([Planned, Ran, Failed]);
export type RunnerAnswer = Static<typeof RunnerAnswer>;

/** The files that a runner leaves in the folder of a run. */
export const rowsFile = 'rows.ndjson';
export const parquetFile = 'result.parquet';
