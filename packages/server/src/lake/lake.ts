import { mkdir, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { RangeConsumer, RangeRegistration } from '../consumers/ranges.ts';
import type { Database } from '../database/database.ts';
import type { EventLog, TopicAddress } from '../events/events.ts';
import type { ObjectStore } from '../objects/objects.ts';
import type { Clock } from '../platform/clock.ts';
import type { Log } from '../platform/log.ts';
import { type Problem, problem } from '../platform/problem.ts';
import type { Random } from '../platform/random.ts';
import type { Topics } from '../topics/topics.ts';
import type { Catalog } from './catalog.ts';
import { databaseCatalog } from './catalog-store.ts';
import { Compaction } from './compaction.ts';
import { Converter } from './converter.ts';
import { type FilePage, type FileQuery, LakeFiles, type OrganizationReference } from './files.ts';
import { type LocalFiles, LocalFilesFullError, openFileCache, storedFiles } from './local-files.ts';
import { Retention } from './retention.ts';
import { LakeSchemas } from './schemas.ts';
import { LakeTables, type TableDescription, type TableScan } from './tables.ts';
import { topicWrite } from './topic-write.ts';
import { LakeUnavailableError } from './unavailable.ts';
import { LakeWriter } from './writer.ts';

export type { OrganizationReference } from './files.ts';
export type { ScanFile, TableDescription, TableScan } from './tables.ts';
export { LakeUnavailableError } from './unavailable.ts';

export interface LakeOptions {
  readonly database: Database;
  readonly events: EventLog;
  readonly topics: Topics;
  readonly objects: ObjectStore;
  /** Where the objects are files of this machine; undefined where they are elsewhere. */
  readonly objectsDirectory: string | undefined;
  readonly dataDirectory: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly register: (consumer: RangeConsumer) => RangeRegistration;
  readonly fileBytes: number;
  readonly fileMilliseconds: number;
  readonly cacheBytes: number;
  readonly deletedTopicMilliseconds: number;
  /** How long a flush may take. */
  readonly flushMilliseconds?: number;
}

const usualFlushMilliseconds = 60_000;
const flushChannel = 'lake.flush';
/** Topics that are flushed at once for one query. */
const flushesAtOnce = 8;

/** The lake: messages of topics with batch as files, tables and schemas. See README.md. */
export class Lake {
  readonly #options: LakeOptions;
  readonly #catalog: Catalog;
  readonly #converter: Converter;
  /** Of its own, so that no query waits for a merge. */
  readonly #upkeepConverter: Converter;
  readonly #writer: LakeWriter;
  readonly #files: LakeFiles;
  readonly #tables: LakeTables;
  readonly #schemas: LakeSchemas;
  readonly #compaction: Compaction;
  readonly #retention: Retention;
  readonly #scratchDirectory: string;
  readonly #stopped = new AbortController();
  readonly #endListening: () => void;
  #maintaining: Promise<void> = Promise.resolve();

  /** Prepares the directories of the lake and puts it together. It does nothing before `start`. */
  static async open(options: LakeOptions): Promise<Lake> {
    const dataDirectory = resolve(options.dataDirectory);
    const scratchDirectory = join(dataDirectory, 'lake-scratch');
    await rm(scratchDirectory, { recursive: true, force: true });
    await mkdir(scratchDirectory, { recursive: true, mode: 0o700 });
    const localFiles =
      options.objectsDirectory === undefined
        ? await openFileCache({
            ...options,
            directory: join(dataDirectory, 'lake-cache'),
            bytes: options.cacheBytes,
          })
        : storedFiles(options.objectsDirectory);
    return new Lake({ ...options, dataDirectory }, localFiles, scratchDirectory);
  }

  private constructor(options: LakeOptions, localFiles: LocalFiles, scratchDirectory: string) {
    const { database, register } = options;
    const catalog = databaseCatalog(database);
    this.#options = options;
    this.#catalog = catalog;
    this.#tables = new LakeTables({ catalog, localFiles });
    this.#scratchDirectory = scratchDirectory;
    const inputs = [options.objectsDirectory ?? join(options.dataDirectory, 'lake-cache')];
    this.#converter = new Converter({ directory: join(scratchDirectory, 'write') });
    this.#upkeepConverter = new Converter({ directory: join(scratchDirectory, 'upkeep'), inputs });
    const write = topicWrite({
      ...options,
      catalog,
      converter: this.#converter,
      scratchDirectory: join(scratchDirectory, 'write'),
    });
    this.#writer = new LakeWriter({ ...options, write, register });
    this.#files = new LakeFiles({ ...options, catalog });
    const upkeep = { ...options, catalog, localFiles, converter: this.#upkeepConverter };
    this.#schemas = new LakeSchemas(upkeep);
    this.#compaction = new Compaction({
      ...upkeep,
      scratchDirectory: join(scratchDirectory, 'upkeep'),
      isKeeper: (topic) => this.#isKeeper(topic),
    });
    this.#retention = new Retention({ ...options, catalog });
    this.#endListening = database.listen(flushChannel, (payload) => {
      const [organizationId = '', topicName = ''] = payload.split('/');
      this.#writer.hurryAWhile({ organizationId, topicName });
    });
  }

  /** Takes up what was published before the process started. */
  async start(): Promise<void> {
    for (const name of ['write', 'upkeep']) {
      await mkdir(join(this.#scratchDirectory, name), { recursive: true });
    }
    for (const topic of await this.#options.events.topics()) await this.#isInLake(topic);
  }

  /** Notes that a message was published that goes to the lake. Costs two look-ups. */
  follow(organizationId: string, topicName: string, bytes: number): void {
    this.#writer.follow(organizationId, topicName, bytes);
  }

  /**
   * Resolves when everything that was acknowledged before the call is in the tables of these topics, on
   * whatever node it is. Throws `LakeUnavailableError` when that takes too long, and what the signal says.
   */
  async flush(
    organization: OrganizationReference,
    topicNames: readonly string[],
    signal: AbortSignal,
  ): Promise<void> {
    const limit = AbortSignal.timeout(this.#options.flushMilliseconds ?? usualFlushMilliseconds);
    const until = AbortSignal.any([signal, limit, this.#stopped.signal]);
    const names = new Set(topicNames).values();
    const work = Array.from({ length: flushesAtOnce }, async () => {
      for (const topicName of names)
        await this.#flushTopic({ organizationId: organization.id, topicName }, until);
    });
    await Promise.all(work);
    signal.throwIfAborted();
    if (until.aborted) {
      throw new LakeUnavailableError('The latest messages could not be added to the tables in time.');
    }
  }

  /** The tables of an organization, also those whose files are all gone. */
  tables(organization: OrganizationReference): Promise<TableDescription[]> {
    return this.#tables.describe(organization);
  }

  /**
   * How to read the table of a topic; undefined when there is none. The files are on this machine. With a
   * range of times of acceptance, in milliseconds, files without a row of that time are left out.
   */
  scan(
    organization: OrganizationReference,
    topicName: string,
    signal?: AbortSignal,
    range?: { readonly from?: number; readonly to?: number },
  ): Promise<TableScan | undefined> {
    return this.#tables.scan(organization, topicName, signal, range);
  }

  /** The folder of this machine that holds the files of an organization, and of no other. */
  rootOf(organization: OrganizationReference): string {
    return this.#tables.rootOf(organization);
  }

  async listFiles(
    organization: OrganizationReference,
    topicName: string,
    query: FileQuery,
  ): Promise<FilePage | Problem> {
    const refused = await this.#refusal(organization.id, topicName, { needsBatch: true });
    return refused ?? this.#files.list(organization, topicName, query);
  }

  async downloadUrl(
    organization: OrganizationReference,
    topicName: string,
    key: string,
  ): Promise<{ url: string; expiresAt: number } | Problem> {
    const refused = await this.#refusal(organization.id, topicName, { needsBatch: true });
    if (refused !== undefined) return refused;
    return (await this.#files.downloadUrl(organization, topicName, key)) ?? problem('FILE_NOT_FOUND');
  }

  /** The schema of a topic as JSON Schema. */
  async schema(organization: OrganizationReference, topicName: string): Promise<string | Problem> {
    const found = await this.#schemas.read({ organizationId: organization.id, topicName });
    return found?.schema ?? problem('SCHEMA_NOT_FOUND');
  }

  async updateSchema(
    organization: OrganizationReference,
    topicName: string,
    schema: string,
  ): Promise<'changed' | 'same' | Problem> {
    const refused = await this.#refusal(organization.id, topicName, { needsBatch: false });
    return refused ?? this.#schemas.upload({ organizationId: organization.id, topicName }, schema);
  }

  async recalculateSchema(
    organization: OrganizationReference,
    topicName: string,
    signal: AbortSignal,
  ): Promise<string | Problem> {
    const refused = await this.#refusal(organization.id, topicName, { needsBatch: true });
    if (refused !== undefined) return refused;
    try {
      await this.flush(organization, [topicName], signal);
      return await this.#schemas.recalculate({ organizationId: organization.id, topicName }, signal);
    } catch (error) {
      if (error instanceof LakeUnavailableError || error instanceof LocalFilesFullError) {
        return problem('OVERLOADED', error.message, { retryAfterSeconds: 5 });
      }
      throw error;
    }
  }

  /** Merges small files and lets old ones go. To be called from time to time. */
  async maintain(): Promise<void> {
    const { signal } = this.#stopped;
    this.#maintaining = (async () => {
      await this.#retention.run(signal);
      await this.#compaction.run(signal);
    })();
    try {
      await this.#maintaining;
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  async close(): Promise<void> {
    this.#endListening();
    this.#stopped.abort();
    await this.#writer.close();
    await Promise.all([this.#converter.close(), this.#upkeepConverter.close()]);
    await this.#maintaining.catch(() => undefined);
  }

  async #flushTopic(topic: TopicAddress, signal: AbortSignal): Promise<void> {
    const { events, database } = this.#options;
    const bounds = await events.bounds(topic);
    if (bounds.length === 0 || !(await this.#isInLake(topic))) return;
    const registration = this.#writer.registration(topic.organizationId);
    if (registration === undefined) return;
    const cursors = new Map(
      registration.held(topic.topicName).map(({ address, cursor }) => [address.partition, cursor]),
    );
    const targets = bounds
      .map(({ partition, last }) => ({ partition, offset: last }))
      .filter(({ partition, offset }) => (cursors.get(partition) ?? 0) < offset);
    if (targets.length === 0) return;
    const over = this.#writer.hurry(topic);
    try {
      if (targets.some(({ partition }) => !cursors.has(partition))) {
        await database.announce(flushChannel, `${topic.organizationId}/${topic.topicName}`);
      }
      await registration.reached(topic.topicName, targets, signal);
    } finally {
      over();
    }
  }

  /** Whether messages of a topic are, or were, meant for the lake. From then on it is followed here. */
  async #isInLake(topic: TopicAddress): Promise<boolean> {
    if (this.#writer.isFollowed(topic)) return true;
    const resolved = await this.#options.topics.resolve(topic.organizationId, topic.topicName);
    const isIn = resolved?.routes.lake === true || (await this.#catalog.table(topic)) !== undefined;
    if (isIn) this.#writer.follow(topic.organizationId, topic.topicName, 0);
    return isIn;
  }

  /** The holder of the first partition of a topic: there is one at most. */
  async #isKeeper(topic: TopicAddress): Promise<boolean> {
    const [first] = (await this.#options.events.bounds(topic)).sort(
      (one, other) => one.partition - other.partition,
    );
    if (first === undefined) return true;
    const held = this.#writer.registration(topic.organizationId)?.held(topic.topicName) ?? [];
    return held.some(({ address }) => address.partition === first.partition);
  }

  async #refusal(
    organizationId: string,
    topicName: string,
    { needsBatch }: { needsBatch: boolean },
  ): Promise<Problem | undefined> {
    const topic = await this.#options.topics.resolve(organizationId, topicName);
    if (topic === undefined) return problem('TOPIC_NOT_FOUND', `There is no topic named ${topicName}.`);
    return needsBatch && !topic.routes.lake ? problem('BATCH_REQUIRED') : undefined;
  }
}
