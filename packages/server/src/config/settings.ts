import { readFileSync } from 'node:fs';
import { defaultLimits, type LimitName, type Limits, limitSetting } from '@millrace/contract';
import { type LogLevel, logLevels } from '../platform/log.ts';
import {
  choice,
  hosts,
  integer,
  networks,
  origins,
  type Parse,
  publicUrl,
  Refusal,
  text,
  url,
} from './parsers.ts';

interface Setting<Value> {
  readonly name: string;
  readonly description: string;
  readonly fallback: Value;
  readonly parse: Parse<Value>;
}

function setting<Value>(
  name: string,
  description: string,
  fallback: Value,
  parse: Parse<Value>,
): Setting<Value> {
  return { name, description, fallback, parse };
}

/** Every setting but the limits, which are derived from the contract. */
const settings = {
  host: setting('MILLRACE_HOST', 'The address to listen on.', '127.0.0.1', text),
  port: setting('MILLRACE_PORT', 'The port to listen on; 0 picks a free one.', 8080, integer(0, 65_535)),
  publicUrl: setting<string | undefined>(
    'MILLRACE_PUBLIC_URL',
    'The URL under which clients reach the service: used in links, where it is derived from host and port unless set, and as the issuer of tokens, which is millrace unless set.',
    undefined,
    publicUrl,
  ),
  dataDirectory: setting(
    'MILLRACE_DATA_DIR',
    'The folder for everything that is kept on disk.',
    './data',
    text,
  ),
  logLevel: setting<LogLevel>(
    'MILLRACE_LOG_LEVEL',
    'How much is logged; at debug every request is.',
    'info',
    choice(logLevels),
  ),
  signUp: setting<'open' | 'invite'>(
    'MILLRACE_SIGN_UP',
    'Whether anybody may sign up, or only people who are invited.',
    'open',
    choice(['open', 'invite']),
  ),
  databaseUrl: setting<string | undefined>(
    'MILLRACE_DATABASE_URL',
    'postgres://user:password@host/database. SQLite in the data folder unless set.',
    undefined,
    url('postgres', 'postgresql', 'sqlite'),
  ),
  objectsUrl: setting<string | undefined>(
    'MILLRACE_OBJECTS_URL',
    'Where files are kept: file:///folder, or s3://bucket/prefix?region=...&endpoint=.... The data folder unless set.',
    undefined,
    url('file', 's3'),
  ),
  mailUrl: setting<string | undefined>(
    'MILLRACE_MAIL_URL',
    'smtp://user:password@host:port or smtps://.... Unless set, mails are written to outbox.jsonl in the data folder.',
    undefined,
    url('smtp', 'smtps'),
  ),
  mailFrom: setting('MILLRACE_MAIL_FROM', 'The sender of mails.', 'Millrace <millrace@localhost>', text),
  rateLimitDefault: setting(
    'MILLRACE_RATE_LIMIT_DEFAULT',
    'Requests a second of an organization at the level DEFAULT.',
    10_000,
    integer(1, 1_000_000),
  ),
  accessTokenSeconds: setting(
    'MILLRACE_ACCESS_TOKEN_SECONDS',
    'How long an access token is good for.',
    900,
    integer(1, 86_400),
  ),
  sessionDays: setting('MILLRACE_SESSION_DAYS', 'How long an unused session lives.', 30, integer(1, 365)),
  signingKeyDays: setting(
    'MILLRACE_SIGNING_KEY_DAYS',
    'How long a key signs access tokens before the next one takes over.',
    30,
    integer(1, 365),
  ),
  corsOrigins: setting(
    'MILLRACE_CORS_ORIGINS',
    'Origins of web pages that may call the service, separated by commas; * for all.',
    ['*'],
    origins,
  ),
  trustProxy: setting<string[]>(
    'MILLRACE_TRUST_PROXY',
    'Addresses or networks of proxies whose X-Forwarded-For is believed, separated by commas.',
    [],
    networks,
  ),
  lakeFileBytes: setting(
    'MILLRACE_LAKE_FILE_BYTES',
    'A file of a topic is written to the lake when this much waits for it.',
    64 * 1024 * 1024,
    integer(1024, 2 ** 30),
  ),
  lakeFileSeconds: setting(
    'MILLRACE_LAKE_FILE_SECONDS',
    'How long a message waits for its file in the lake at most, unless a query needs it.',
    60,
    integer(1, 86_400),
  ),
  lakeUpkeepSeconds: setting(
    'MILLRACE_LAKE_UPKEEP_SECONDS',
    'How often small files of the lake are merged and old ones removed.',
    30,
    integer(1, 86_400),
  ),
  lakeDeletedTopicHours: setting(
    'MILLRACE_LAKE_DELETED_TOPIC_HOURS',
    'How long the files of a topic are kept after it was deleted.',
    24,
    integer(0, 87_600),
  ),
  lakeCacheBytes: setting(
    'MILLRACE_LAKE_CACHE_BYTES',
    'How much of the lake is kept in the data folder to be queried, where its files are in S3.',
    10 * 2 ** 30,
    integer(2 ** 20, 2 ** 49),
  ),
  queryMemoryBytes: setting(
    'MILLRACE_QUERY_MEMORY_BYTES',
    'The memory that one SQL query may use.',
    2 ** 30,
    integer(2 ** 26, 2 ** 49),
  ),
  queryThreads: setting(
    'MILLRACE_QUERY_THREADS',
    'The threads that one SQL query may use; 0 for as many as the machine has cores.',
    0,
    integer(0, 1024),
  ),
  queryTemporaryBytes: setting(
    'MILLRACE_QUERY_TEMPORARY_BYTES',
    'The space on disk that one SQL query may use for what does not fit its memory.',
    4 * 2 ** 30,
    integer(0, 2 ** 49),
  ),
  queryResultBytes: setting(
    'MILLRACE_QUERY_RESULT_BYTES',
    'How large the result of a SQL query may be.',
    2 ** 30,
    integer(1024, 2 ** 49),
  ),
  querySeconds: setting('MILLRACE_QUERY_SECONDS', 'How long a SQL query may run.', 600, integer(1, 3600)),
  queryConcurrency: setting(
    'MILLRACE_QUERY_CONCURRENCY',
    'How many SQL queries of one organization run at once; the others are queued.',
    2,
    integer(1, 1000),
  ),
  queryTotalConcurrency: setting(
    'MILLRACE_QUERY_TOTAL_CONCURRENCY',
    'How many SQL queries run at once on a node.',
    4,
    integer(1, 1000),
  ),
  taskSandbox: setting<'auto' | 'bubblewrap' | 'none'>(
    'MILLRACE_TASK_SANDBOX',
    'What tasks run in: bubblewrap where the host has it (auto), bubblewrap or not at all (bubblewrap), or plain processes with limits (none).',
    'auto',
    choice(['auto', 'bubblewrap', 'none']),
  ),
  taskNetwork: setting<'none' | 'open' | 'filtered'>(
    'MILLRACE_TASK_NETWORK',
    'What tasks may connect to besides the service itself: nothing, everything, or only the hosts of MILLRACE_TASK_NETWORK_ALLOW (filtered). Without bubblewrap it is always everything.',
    'none',
    choice(['none', 'open', 'filtered']),
  ),
  taskNetworkAllow: setting<string[]>(
    'MILLRACE_TASK_NETWORK_ALLOW',
    'Hosts that tasks may connect to where the network is filtered, such as api.example.com or *.example.com, separated by commas. Private addresses never are.',
    [],
    hosts,
  ),
  headersTimeoutSeconds: setting(
    'MILLRACE_HEADERS_TIMEOUT_SECONDS',
    'How long the headers of a request may take to arrive.',
    15,
    integer(1, 3600),
  ),
  requestTimeoutSeconds: setting(
    'MILLRACE_REQUEST_TIMEOUT_SECONDS',
    'How long a whole request may take to arrive.',
    300,
    integer(1, 86_400),
  ),
  keepAliveSeconds: setting(
    'MILLRACE_KEEP_ALIVE_SECONDS',
    'How long a connection is kept for the next request.',
    72,
    integer(1, 3600),
  ),
  idleTimeoutSeconds: setting(
    'MILLRACE_IDLE_TIMEOUT_SECONDS',
    'How long a connection may be silent in the middle of a request.',
    120,
    integer(1, 86_400),
  ),
  shutdownSeconds: setting(
    'MILLRACE_SHUTDOWN_SECONDS',
    'How long requests in hand may take to finish after SIGTERM.',
    20,
    integer(0, 3600),
  ),
} as const;

/** Names of the same family that belong to the client and the command line. */
const clientNames = new Set([
  'MILLRACE_ENDPOINT',
  'MILLRACE_API_KEY',
  'MILLRACE_ORGANIZATION',
  'MILLRACE_PROFILE',
]);

export type Settings = {
  readonly [Name in keyof typeof settings]: (typeof settings)[Name]['fallback'];
} & { readonly limits: Limits };

/** What a person setting the service up wants to know of each setting. */
export interface SettingDescription {
  readonly name: string;
  readonly description: string;
  readonly fallback: string;
}

export function describeSettings(): SettingDescription[] {
  return [
    ...Object.values(settings).map(({ name, description, fallback }) => ({
      name,
      description,
      fallback: fallback === undefined ? '' : String(fallback),
    })),
    ...limitNames().map((name) => ({
      name: limitSetting(name),
      description: `The limit ${name}.`,
      fallback: String(defaultLimits[name]),
    })),
  ];
}

/**
 * Reads the settings from the environment, once. `NAME_FILE` gives the file that holds the value of NAME.
 * Anything unknown or wrong is refused, all of it at once, in sentences that name the setting.
 */
export function readSettings(
  environment: Readonly<Record<string, string | undefined>>,
): { settings: Settings } | { refusals: string[] } {
  const refusals: string[] = [];
  const known = new Set(describeSettings().map(({ name }) => name));
  for (const name of Object.keys(environment)) {
    if (!name.startsWith('MILLRACE_') || clientNames.has(name)) continue;
    if (!known.has(name) && !known.has(name.replace(/_FILE$/, ''))) {
      refusals.push(`${name} is not a setting of Millrace${suggestion(name, known)}`);
    }
  }

  function read<Value>({ name, fallback, parse }: Omit<Setting<Value>, 'description'>): Value {
    const given = givenValue(environment, name);
    if (given === undefined) return fallback;
    const value = given instanceof Refusal ? given : parse(given);
    if (!(value instanceof Refusal)) return value;
    refusals.push(`${name} ${value.reason}.`);
    return fallback;
  }

  const limits: Record<LimitName, number> = { ...defaultLimits };
  for (const name of limitNames()) {
    limits[name] = read({
      name: limitSetting(name),
      fallback: defaultLimits[name],
      parse: integer(1, 2 ** 40),
    });
  }
  const values: Settings = {
    host: read(settings.host),
    port: read(settings.port),
    publicUrl: read(settings.publicUrl),
    dataDirectory: read(settings.dataDirectory),
    logLevel: read(settings.logLevel),
    signUp: read(settings.signUp),
    databaseUrl: read(settings.databaseUrl),
    objectsUrl: read(settings.objectsUrl),
    mailUrl: read(settings.mailUrl),
    mailFrom: read(settings.mailFrom),
    rateLimitDefault: read(settings.rateLimitDefault),
    accessTokenSeconds: read(settings.accessTokenSeconds),
    sessionDays: read(settings.sessionDays),
    signingKeyDays: read(settings.signingKeyDays),
    corsOrigins: read(settings.corsOrigins),
    trustProxy: read(settings.trustProxy),
    lakeFileBytes: read(settings.lakeFileBytes),
    lakeFileSeconds: read(settings.lakeFileSeconds),
    lakeUpkeepSeconds: read(settings.lakeUpkeepSeconds),
    lakeDeletedTopicHours: read(settings.lakeDeletedTopicHours),
    lakeCacheBytes: read(settings.lakeCacheBytes),
    queryMemoryBytes: read(settings.queryMemoryBytes),
    queryThreads: read(settings.queryThreads),
    queryTemporaryBytes: read(settings.queryTemporaryBytes),
    queryResultBytes: read(settings.queryResultBytes),
    querySeconds: read(settings.querySeconds),
    queryConcurrency: read(settings.queryConcurrency),
    queryTotalConcurrency: read(settings.queryTotalConcurrency),
    taskSandbox: read(settings.taskSandbox),
    taskNetwork: read(settings.taskNetwork),
    taskNetworkAllow: read(settings.taskNetworkAllow),
    headersTimeoutSeconds: read(settings.headersTimeoutSeconds),
    requestTimeoutSeconds: read(settings.requestTimeoutSeconds),
    keepAliveSeconds: read(settings.keepAliveSeconds),
    idleTimeoutSeconds: read(settings.idleTimeoutSeconds),
    shutdownSeconds: read(settings.shutdownSeconds),
    limits,
  };
  return refusals.length > 0 ? { refusals } : { settings: values };
}

function limitNames(): LimitName[] {
  return Object.keys(defaultLimits).filter((name): name is LimitName => name in defaultLimits);
}

function givenValue(
  environment: Readonly<Record<string, string | undefined>>,
  name: string,
): string | Refusal | undefined {
  const direct = environment[name];
  const file = environment[`${name}_FILE`];
  if (file === undefined) return direct;
  if (direct !== undefined) return new Refusal(`and ${name}_FILE are both set; use one`);
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return new Refusal(`cannot be read from the file that ${name}_FILE names`);
  }
}

function suggestion(name: string, known: ReadonlySet<string>): string {
  const wanted = name.replaceAll('_', '');
  const close = [...known].find(
    (candidate) => candidate.replaceAll('_', '') === wanted || distance(candidate, name) <= 2,
  );
  return close === undefined ? '.' : `; did you mean ${close}?`;
}

/** Edits that turn one word into the other. */
function distance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_value, index) => index);
  for (let i = 1; i <= from.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= to.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
