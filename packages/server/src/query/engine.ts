/**
 * The port of the engine that runs SQL. It knows nothing of queues, history or who may ask: it says what a
 * statement is, and runs one over the tables it is given, in isolation and within its limits.
 */
export interface QueryEngine {
  /** What a text is, decided by the engine's own parser. */
  inspect(sql: string): Promise<Statement | Refusal>;
  /**
   * Runs a statement. Aborting the signal stops it within a second. What goes wrong with the statement is an
   * outcome; only a fault of the service throws.
   */
  run(job: QueryJob, signal: AbortSignal): Promise<Success | Failure>;
  close(): Promise<void>;
}

/** One statement that only reads. */
export interface Statement {
  readonly kind: 'statement';
  readonly tables: readonly TableUse[];
  /** Names that the statement itself gives to parts of it. */
  readonly commonNames: readonly string[];
  /** It asks which tables there are. */
  readonly listsTables: boolean;
  /** It names the column by which files can be left out. */
  readonly namesIngestedAt: boolean;
}

export interface TableUse {
  readonly catalog: string;
  readonly schema: string;
  readonly name: string;
  /** In bytes from the begin of the statement. */
  readonly position: number;
}

/** Something else than one statement that reads. */
export interface Refusal {
  readonly kind: 'refused';
  readonly reason: string;
}

/** From which to which time of acceptance, in milliseconds, both included. */
export interface IngestedRange {
  readonly from?: number;
  readonly to?: number;
}

export interface QueryJob {
  readonly organization: { readonly id: string; readonly name: string };
  readonly sql: string;
  /** The folder of the organization's files: everything it may read. */
  readonly directory: string;
  readonly tables: readonly JobTable[];
  /** Whether it is worth asking which part of its tables is read. */
  readonly namesIngestedAt: boolean;
  /** Writes the organization's state, as lines of JSON, where the statement uses it. */
  readonly writeState?: ((path: string) => Promise<void>) | undefined;
}

export interface JobTable {
  /** The name under which the statement finds it. */
  readonly name: string;
  readonly columns: readonly { readonly name: string; readonly type: string }[];
  /** A SELECT that gives its rows, at least those of the range. */
  scan(range: IngestedRange | undefined): Promise<string>;
}

export interface ResultColumn {
  readonly name: string;
  /** The name in files, where no two columns may have the same. */
  readonly distinctName: string;
  readonly type: string;
}

export interface Success {
  readonly kind: 'succeeded';
  readonly columns: readonly ResultColumn[];
  readonly rows: number;
  readonly bytesScanned: number;
  readonly executionMilliseconds: number;
  /** Lines of `{"r":[...]}`, each a row of texts and nulls. */
  readonly rowsPath: string;
  readonly parquetPath: string;
  /** Lets go of the files. */
  discard(): Promise<void>;
}

export interface Failure {
  readonly kind: 'failed';
  /** For whoever submitted the query. */
  readonly message: string;
  /** The table that the statement names and that is not there. */
  readonly missingTable?: string | undefined;
}

/** How much one statement may use. */
export interface EngineLimits {
  readonly memoryBytes: number;
  readonly threads: number;
  readonly temporaryBytes: number;
  readonly resultBytes: number;
  readonly milliseconds: number;
}
