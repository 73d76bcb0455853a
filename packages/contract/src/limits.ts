const KiB = 1024;
const MiB = 1024 * KiB;
const GiB = 1024 * MiB;

/**
 * Every limit of the interface with its default. A server may set each one with the environment variable
 * `MILLRACE_LIMIT_` + its name in upper snake case; the operations are built from the limits in force, so
 * what the documentation of a server says is what it enforces.
 */
export const defaultLimits = {
  /** Bytes of the JSON body of an operation that names no limit of its own. */
  requestBytes: 256 * KiB,
  /** API keys of one organization. */
  apiKeys: 500,
  /** Bytes of one published message. */
  messageBytes: MiB,
  /** Bytes of one batch of messages, unzipped. */
  batchBytes: 16 * MiB,
  /** Messages in one batch. */
  batchMessages: 10_000,
  /** Bytes of a code upload. */
  codeBytes: 200 * MiB,
  /** Bytes of a code upload when unzipped. */
  codeUnzippedBytes: GiB,
  /** Files and folders in a code upload. */
  codeEntries: 20_000,
  /** Bytes of an event given to invoke, of a request to a task endpoint and of its answer. */
  invokeBytes: 6 * MiB,
  /** Bytes of a topic schema. */
  schemaBytes: MiB,
  /** Parts of a state key. */
  stateKeyParts: 32,
  /** Bytes of a merged state key. */
  stateKeyBytes: KiB,
  /** Bytes of the attributes of a state entry, as JSON. */
  stateAttributesBytes: 400 * KiB,
  /** State entries in one page. */
  statePage: 1000,
  /** Bytes of a SQL query. */
  sqlBytes: 256 * KiB,
  /** Topic files in one page. */
  filesPage: 1000,
  /** Rows in one page of query results. */
  resultsPage: 1000,
  /** Queries in one page of the history. */
  historyPage: 100,
  /** Lines of task log in one page. */
  logsPage: 1000,
  /** Dead letters in one page. */
  deadLettersPage: 1000,
} as const satisfies Record<string, number>;

export type LimitName = keyof typeof defaultLimits;
export type Limits = Readonly<Record<LimitName, number>>;

/** The environment variable that sets a limit. */
export function limitSetting(name: LimitName): string {
  return `MILLRACE_LIMIT_${name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;
}
