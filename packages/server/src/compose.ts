import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { buildContract } from '@millrace/contract';
import type { FastifyInstance } from 'fastify';
import type { Settings } from './config/settings.ts';
import { ConsumerRunner } from './consumers/runner.ts';
import { openDatabase } from './database/open.ts';
import { loadSecrets } from './database/secrets.ts';
import { openSqliteEventLog } from './events/sqlite/sqlite-event-log.ts';
import { Gatekeeper } from './http/access.ts';
import { buildApp } from './http/app.ts';
import { sendProblem } from './http/problems.ts';
import { apiKeyHandlers } from './http/routes/api-keys.ts';
import { authenticationHandlers } from './http/routes/authentication.ts';
import { lakeHandlers } from './http/routes/lake.ts';
import { organizationHandlers } from './http/routes/organizations.ts';
import { publishingHandlers } from './http/routes/publishing.ts';
import { queryHandlers } from './http/routes/query.ts';
import { serviceHandlers } from './http/routes/service.ts';
import { stateHandlers } from './http/routes/state.ts';
import { registerTaskEndpoint } from './http/routes/task-endpoint.ts';
import { taskHandlers } from './http/routes/tasks.ts';
import { topicHandlers } from './http/routes/topics.ts';
import { ApiKeys } from './identity/api-keys.ts';
import { Attempts } from './identity/attempts.ts';
import { Authenticator } from './identity/authenticator.ts';
import { Challenges } from './identity/challenges.ts';
import type { IdentityParts } from './identity/identity.ts';
import { MailedCodes } from './identity/mailed-codes.ts';
import { sweepIdentity } from './identity/maintenance.ts';
import { Passwords } from './identity/passwords.ts';
import { Profiles } from './identity/profiles.ts';
import { Sessions } from './identity/sessions.ts';
import { SigningKeys } from './identity/signing-keys.ts';
import { Tokens } from './identity/tokens.ts';
import { TotpCodes } from './identity/totp.ts';
import { Ingest } from './ingest/ingest.ts';
import { Lake } from './lake/lake.ts';
import { memoryLimiter } from './limits/memory.ts';
import { postgresLimiter } from './limits/postgres.ts';
import type { Mailer } from './mail/mail.ts';
import { outboxMailer } from './mail/outbox.ts';
import { openFileStore } from './objects/files/files.ts';
import { registerObjectRoutes } from './objects/files/routes.ts';
import { signedPath, type UrlSigner, urlSigner } from './objects/files/signature.ts';
import { type ObjectsLocation, parseObjectsLocation } from './objects/location.ts';
import type { ObjectStore } from './objects/objects.ts';
import { relayUploads } from './objects/relay.ts';
import { Organizations } from './organizations/organizations.ts';
import { RateLimits } from './organizations/rate-limits.ts';
import { type Clock, systemClock } from './platform/clock.ts';
import type { Log } from './platform/log.ts';
import { createMetrics } from './platform/metrics.ts';
import { nodeIdOf } from './platform/node-id.ts';
import { PageTokens } from './platform/page-token.ts';
import { problem } from './platform/problem.ts';
import { type Random, systemRandom } from './platform/random.ts';
import { Schedule } from './platform/schedule.ts';
import { version } from './platform/version.ts';
import { openDuckdbEngine } from './query/duckdb/duckdb-engine.ts';
import { Queries } from './query/queries.ts';
import { State } from './state/state.ts';
import { TopicStores } from './state/topic-stores.ts';
import { openExecution } from './tasks/execution/open.ts';
import { TaskLogs } from './tasks/logs/task-logs.ts';
import { taskService } from './tasks/task-service.ts';
import { cycleOfTopics } from './tasks/wiring.ts';
import { Topics } from './topics/topics.ts';

export interface Environment {
  readonly settings: Settings;
  readonly log: Log;
  readonly clock?: Clock;
  readonly random?: Random;
  /** The disk failed under a change: the process must end without acknowledging anything more. */
  readonly onFatal: (error: Error) => void;
  /** Shows a mail to the person at the terminal, when there is one. */
  readonly showMail?: ((text: string) => void) | undefined;
}

/** The service, put together and not yet listening. */
export interface Service {
  readonly app: FastifyInstance;
  readonly objects: ObjectStore;
  /** Tells the service under which URL it is reached, once it listens. From then on tasks run. */
  setListeningUrl(url: string): void;
  /** From here on every new request is refused and the service says that it is not ready. */
  drain(): void;
  /** Lets go of everything, in order. The app must be closed before. */
  close(): Promise<void>;
}

const sweepMilliseconds = 10 * 60_000;
const stateSweepMilliseconds = 10_000;
const trimMilliseconds = 60_000;
const taskSweepMilliseconds = 30_000;
const queryBeatMilliseconds = 5_000;

/** The composition root: from settings to adapters to services to the app. Adapters are named here only. */
export async function compose(environment: Environment): Promise<Service> {
  const { settings, log, onFatal } = environment;
  const clock = environment.clock ?? systemClock;
  const random = environment.random ?? systemRandom;
  const contract = buildContract(settings.limits);
  const location = objectsLocation(settings);

  const database = await openDatabase({
    url: settings.databaseUrl,
    dataDirectory: settings.dataDirectory,
    clock,
    onFatal,
  }).catch((error: Error) => {
    const hint = settings.databaseUrl === undefined ? '' : ' Check MILLRACE_DATABASE_URL.';
    throw new Error(`${error.message.replace(/\.$/, '')}.${hint}`, { cause: error });
  });
  const secrets = await loadSecrets(database, clock, random);
  const taskLogs = new TaskLogs({ database, clock, log });
  // Looking at what the host has takes a while, in which the rest can be opened.
  const openingExecution = openExecution({
    sandbox: settings.taskSandbox,
    network: settings.taskNetwork,
    networkAllow: settings.taskNetworkAllow,
    serviceAddress: () => reachableAddress(app, settings),
    scratchDirectory: join(settings.dataDirectory, 'task-scratch'),
    clock,
    random,
    log,
    onLine: ({ organization, taskId }, line) => taskLogs.write(organization.id, taskId, line),
  });
  openingExecution.catch(() => {});
  let listeningUrl = `http://${settings.host}:${settings.port}`;
  const publicUrl = () => settings.publicUrl ?? listeningUrl;
  const signer = urlSigner(Buffer.from(secrets['object-urls']), publicUrl);
  const { objects, directory: objectsDirectory } = await openObjects(location, clock, signer);
  const mailer = await openMailer(environment, clock);

  const signingKeys = new SigningKeys({ database, clock, random, lifetimeDays: settings.signingKeyDays });
  const tokens = new Tokens({
    keys: signingKeys,
    clock,
    random,
    issuer: settings.publicUrl ?? 'millrace',
    lifetimeSeconds: settings.accessTokenSeconds,
  });
  const sessions = new Sessions({
    database,
    clock,
    random,
    tokens,
    successorSecret: secrets['refresh-successors'],
    lifetimeDays: settings.sessionDays,
  });
  const attempts = new Attempts(database, clock, secrets.codes);
  const profiles = new Profiles(database, clock);
  const identity: IdentityParts = {
    database,
    clock,
    random,
    mailer,
    passwords: new Passwords(),
    codes: new MailedCodes(clock, random, secrets.codes),
    challenges: new Challenges(clock, random),
    totp: new TotpCodes(clock, random, secrets.codes),
    sessions,
    profiles,
    attempts,
    signUp: settings.signUp,
  };
  const keys = new ApiKeys({ database, clock, random, log, most: settings.limits.apiKeys });
  const organizations = new Organizations({ database, clock, random, keys });
  const topics = new Topics(database, clock, cycleOfTopics);
  const events = await openSqliteEventLog({ directory: settings.dataDirectory, clock, onFatal });
  const nodeId = await nodeIdOf(settings.dataDirectory, random);
  const runner = new ConsumerRunner({
    database,
    events,
    clock,
    random,
    log,
    nodeId,
    // Less than what is left of a shutdown after the requests in hand.
    timings: { drainMilliseconds: 5000 },
  });
  const ingest = new Ingest({
    topics,
    stores: { follow: (...topic) => stores.follow(...topic) },
    lake: { follow: (...message) => lake.follow(...message) },
    log: events,
    clock,
    random,
    limits: settings.limits,
  });
  const state = new State({ database, clock, limits: settings.limits });
  const stores = new TopicStores({
    topics,
    state,
    log: events,
    reporter: log,
    register: (consumer) => runner.register(consumer),
  });
  await stores.start();
  const lake = await Lake.open({
    database,
    events,
    topics,
    objects,
    objectsDirectory,
    dataDirectory: settings.dataDirectory,
    clock,
    random,
    log,
    register: (consumer) => runner.registerRanges(consumer),
    fileBytes: settings.lakeFileBytes,
    fileMilliseconds: settings.lakeFileSeconds * 1000,
    cacheBytes: settings.lakeCacheBytes,
    deletedTopicMilliseconds: settings.lakeDeletedTopicHours * 3_600_000,
  });
  await lake.start();
  const queries = new Queries({
    database,
    objects,
    engine: await openDuckdbEngine({
      scratch: join(settings.dataDirectory, 'query-scratch'),
      limits: {
        memoryBytes: settings.queryMemoryBytes,
        threads: settings.queryThreads === 0 ? availableParallelism() : settings.queryThreads,
        temporaryBytes: settings.queryTemporaryBytes,
        resultBytes: settings.queryResultBytes,
        milliseconds: settings.querySeconds * 1000,
      },
      random,
      log,
    }),
    lake,
    topicNames: async (organizationId) => {
      const published = await events.topics(organizationId);
      const { topics: defined } = await topics.get(organizationId);
      return [...defined.keys(), ...published.map(({ topicName }) => topicName)];
    },
    clock,
    random,
    log,
    nodeId,
    concurrency: { ofOne: settings.queryConcurrency, ofAll: settings.queryTotalConcurrency },
  });
  await queries.start();
  const execution = await openingExecution;
  const { isolation, refusal } = execution;
  if (refusal === undefined) log.info({ event: 'tasks.isolation', isolation }, isolation);
  else log.warn({ event: 'tasks.refused' }, refusal);
  const tasks = taskService({
    database,
    clock,
    random,
    log,
    objects,
    keys,
    topics,
    runner,
    execution,
    logs: taskLogs,
    nodeId,
    publicUrl,
    dataDirectory: settings.dataDirectory,
    keySecret: secrets['task-keys'],
    limits: settings.limits,
    observe: (kind, result) => {
      const outcome = result.outcome === 'success' ? 'success' : result.kind;
      metrics.observeInvocation(kind, outcome, result.durationMs / 1000);
    },
  });
  await tasks.start();
  const pageTokens = new PageTokens(secrets['page-tokens']);
  const limiter =
    database.engine === 'postgres' ? postgresLimiter(database.query, clock) : memoryLimiter(clock);
  const schedule = new Schedule(log);
  schedule.every(sweepMilliseconds, 'identity.sweep', () =>
    sweepIdentity(database, attempts, clock, settings.sessionDays),
  );
  schedule.every(stateSweepMilliseconds, 'state.sweep', async () => {
    await state.sweepExpired();
  });
  schedule.every(trimMilliseconds, 'consumers.trim', () => runner.trimLog());
  schedule.every(taskSweepMilliseconds, 'tasks.sweep', () => tasks.sweep());
  schedule.every(settings.lakeUpkeepSeconds * 1000, 'lake.upkeep', () => lake.maintain());

  schedule.every(queryBeatMilliseconds, 'query.beat', () => queries.beat());
  schedule.every(sweepMilliseconds, 'query.sweep', () => queries.sweep());

  const metrics = createMetrics({ version });
  metrics.showConsumers(() => runner.figures.read());
  metrics.showTasks(() => tasks.runs.figures());
  const stopping = new AbortController();
  const gatekeeper = new Gatekeeper(new Authenticator({ clock, tokens, sessions, keys }), organizations);
  const rateLimits = new RateLimits(limiter, settings.rateLimitDefault);
  const app = buildApp({
    contract,
    log,
    random,
    metrics,
    signingKeys,
    publicUrl,
    check: async () => {
      await database.check();
      await objects.check();
      await events.check();
    },
    isDraining: () => stopping.signal.aborted,
    stopping: stopping.signal,
    gatekeeper,
    rateLimits,
    handlers: {
      ...authenticationHandlers(identity, organizations),
      ...organizationHandlers(identity, organizations),
      ...apiKeyHandlers(keys, organizations, clock),
      ...serviceHandlers(),
      ...topicHandlers(topics),
      ...publishingHandlers(ingest, topics, events),
      ...stateHandlers(state, pageTokens, settings.limits),
      ...taskHandlers(tasks, taskLogs, pageTokens, settings.limits),
      ...lakeHandlers(lake, pageTokens, settings.limits),
      ...queryHandlers(queries, pageTokens, settings.limits),
    },
    headers: { corsOrigins: settings.corsOrigins, https: publicUrl().startsWith('https:') },
    trustProxy: settings.trustProxy.length === 0 ? false : settings.trustProxy,
    timeouts: {
      headersMilliseconds: settings.headersTimeoutSeconds * 1000,
      requestMilliseconds: settings.requestTimeoutSeconds * 1000,
      keepAliveMilliseconds: settings.keepAliveSeconds * 1000,
      idleMilliseconds: settings.idleTimeoutSeconds * 1000,
    },
    extend: (extended, paths) => {
      registerObjectRoutes(extended, {
        store: objects,
        signer,
        clock,
        refuse: (reply, code, detail) =>
          sendProblem(reply, problem(code, detail, code === 'STORAGE_FULL' ? { retryAfterSeconds: 5 } : {})),
      });
      paths.add(`${signedPath}*`, ['GET', 'HEAD', 'PUT']);
      const endpointParts = { contract, organizations, gatekeeper, rateLimits, runs: tasks.runs, clock };
      registerTaskEndpoint(extended, paths, endpointParts);
    },
  });

  return {
    app,
    objects,
    setListeningUrl: (url) => {
      listeningUrl = url;
      tasks.run();
    },
    drain: () => {
      tasks.runs.drain();
      stopping.abort();
    },
    close: () =>
      closeInOrder(log, [
        ['tasks', () => tasks.close()],
        ['queries', () => queries.close()],
        ['lake', () => lake.close()],
        ['schedule', () => schedule.close()],
        ['api-keys', () => keys.close()],
        ['limiter', () => limiter.close()],
        ['mail', () => mailer.close()],
        ['objects', () => objects.close()],
        ['consumers', () => runner.close()],
        ['task-processes', () => execution.close()],
        ['task-logs', () => taskLogs.close()],
        ['events', () => events.close()],
        ['database', () => database.close()],
      ]),
  };
}

/** Where a process on this host reaches the service. */
function reachableAddress(app: FastifyInstance, settings: Settings): { host: string; port: number } {
  const address = app.server.address();
  if (address === null || typeof address === 'string') return { host: settings.host, port: settings.port };
  const anywhere = { '0.0.0.0': '127.0.0.1', '::': '::1' } as const;
  const host = address.address;
  return { host: host === '0.0.0.0' || host === '::' ? anywhere[host] : host, port: address.port };
}

function objectsLocation(settings: Settings): Exclude<ObjectsLocation, { kind: 'refused' }> {
  const folder = join(settings.dataDirectory, 'objects');
  const location: ObjectsLocation =
    settings.objectsUrl === undefined
      ? { kind: 'files', directory: folder }
      : parseObjectsLocation(settings.objectsUrl);
  if (location.kind === 'refused') throw new Error(`MILLRACE_OBJECTS_URL is refused. ${location.reason}`);
  return location;
}

// The engines of larger set-ups are read only where they are used: their libraries are slow to load.

async function openObjects(
  location: Exclude<ObjectsLocation, { kind: 'refused' }>,
  clock: Clock,
  signer: UrlSigner,
): Promise<{ objects: ObjectStore; directory: string | undefined }> {
  if (location.kind === 'files') {
    const objects = await openFileStore({ directory: location.directory, signer });
    return { objects, directory: objects.directory };
  }
  const { openS3Store } = await import('./objects/s3/s3.ts');
  return { objects: relayUploads(openS3Store({ location, clock }), signer), directory: undefined };
}

async function openMailer(environment: Environment, clock: Clock): Promise<Mailer> {
  const { settings, log, showMail } = environment;
  if (settings.mailUrl !== undefined) {
    const { smtpMailer } = await import('./mail/smtp.ts');
    return smtpMailer({ url: settings.mailUrl, from: settings.mailFrom, log });
  }
  return outboxMailer({ dataDirectory: settings.dataDirectory, clock, log, show: showMail });
}

/** Closes one thing after the other; one that fails is logged and does not keep the rest from closing. */
async function closeInOrder(log: Log, steps: readonly [string, () => Promise<void>][]): Promise<void> {
  for (const [name, close] of steps) {
    try {
      await close();
    } catch (error) {
      log.error({ event: 'shutdown.failed', step: name, error }, 'a part could not be closed');
    }
  }
}
