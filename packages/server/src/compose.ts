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
import { organizationHandlers } from './http/routes/organizations.ts';
import { publishingHandlers } from './http/routes/publishing.ts';
import { serviceHandlers } from './http/routes/service.ts';
import { stateHandlers } from './http/routes/state.ts';
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
import { State } from './state/state.ts';
import { TopicStores } from './state/topic-stores.ts';
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
  /** Tells the service under which URL it is reached, once it listens. */
  setListeningUrl(url: string): void;
  /** From here on every new request is refused and the service says that it is not ready. */
  drain(): void;
  /** Lets go of everything, in order. The app must be closed before. */
  close(): Promise<void>;
}

const sweepMilliseconds = 10 * 60_000;
const stateSweepMilliseconds = 10_000;

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
  let listeningUrl = `http://${settings.host}:${settings.port}`;
  const publicUrl = () => settings.publicUrl ?? listeningUrl;
  const signer = urlSigner(Buffer.from(secrets['object-urls']), publicUrl);
  const objects = await openObjects(location, clock, signer);
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
  const topics = new Topics(database, clock);
  const events = await openSqliteEventLog({ directory: settings.dataDirectory, clock, onFatal });
  const runner = new ConsumerRunner({
    database,
    events,
    clock,
    random,
    log,
    nodeId: await nodeIdOf(settings.dataDirectory, random),
    // Less than what is left of a shutdown after the requests in hand.
    timings: { drainMilliseconds: 5000 },
  });
  const ingest = new Ingest({
    topics,
    stores: { follow: (...topic) => stores.follow(...topic) },
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

  const metrics = createMetrics({ version });
  metrics.showConsumers(() => runner.figures.read());
  const stopping = new AbortController();
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
    gatekeeper: new Gatekeeper(new Authenticator({ clock, tokens, sessions, keys }), organizations),
    rateLimits: new RateLimits(limiter, settings.rateLimitDefault),
    handlers: {
      ...authenticationHandlers(identity, organizations),
      ...organizationHandlers(identity, organizations),
      ...apiKeyHandlers(keys, organizations, clock),
      ...serviceHandlers(),
      ...topicHandlers(topics),
      ...publishingHandlers(ingest, topics, events),
      ...stateHandlers(state, pageTokens, settings.limits),
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
    },
  });

  return {
    app,
    objects,
    setListeningUrl: (url) => {
      listeningUrl = url;
    },
    drain: () => {
      stopping.abort();
    },
    close: () =>
      closeInOrder(log, [
        ['schedule', () => schedule.close()],
        ['api-keys', () => keys.close()],
        ['limiter', () => limiter.close()],
        ['mail', () => mailer.close()],
        ['objects', () => objects.close()],
        ['consumers', () => runner.close()],
        ['events', () => events.close()],
        ['database', () => database.close()],
      ]),
  };
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
): Promise<ObjectStore> {
  if (location.kind === 'files') return openFileStore({ directory: location.directory, signer });
  const { openS3Store } = await import('./objects/s3/s3.ts');
  return relayUploads(openS3Store({ location, clock }), signer);
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
