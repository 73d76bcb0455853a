import { setTimeout as pause } from 'node:timers/promises';
import type { TopicAddress } from '../events/events.ts';
import type { ObjectStore } from '../objects/objects.ts';
import type { Clock } from '../platform/clock.ts';
import type { Log } from '../platform/log.ts';
import type { Topics } from '../topics/topics.ts';
import type { Catalog } from './catalog.ts';
import {
  afterAll,
  hourFolder,
  hourMilliseconds,
  objectFolder,
  objectKeyOf,
  ownerOf,
  topicFolder,
} from './keys.ts';

export interface RetentionParts {
  readonly catalog: Catalog;
  readonly topics: Topics;
  readonly objects: ObjectStore;
  readonly clock: Clock;
  readonly log: Log;
  /** How long the files of a deleted topic are kept. */
  readonly deletedTopicMilliseconds: number;
}

const dayMilliseconds = 86_400_000;
/** What the contract says where a topic does not. */
const usualRetentionDays = 90;
/** Longer than any query takes that began to read a file before it was removed. */
export const removedGraceMilliseconds = 3_600_000;
/** Longer than a file waits for its row in the catalog. */
export const orphanGraceMilliseconds = 3_600_000;
const deletionsAtOnce = 500;
const orphanPageSize = 1000;
const orphanPagesAtOnce = 20;
const orphanSweepMilliseconds = 3_600_000;

/** Lets go of what is old, was removed, or never came to belong to a table. */
export class Retention {
  readonly #parts: RetentionParts;
  /** Where the sweep for orphans goes on; undefined between two sweeps. */
  #sweepAfter: string | undefined;
  #sweptAt = Number.NEGATIVE_INFINITY;

  constructor(parts: RetentionParts) {
    this.#parts = parts;
  }

  async run(signal: AbortSignal): Promise<void> {
    for (const topic of await this.#parts.catalog.topics()) {
      if (signal.aborted) return;
      await this.removeOld(topic);
      // Others have a turn: there may be many topics, and nobody waits for this.
      await pause(0);
    }
    await this.deleteRemoved(signal);
    await this.#sweepNow(signal);
  }

  /** Removes the files of a topic that are past its retention, or that it had when it was deleted. */
  async removeOld(topic: TopicAddress): Promise<void> {
    const { catalog, topics, clock, log, deletedTopicMilliseconds } = this.#parts;
    const name = await catalog.organizationName(topic.organizationId);
    if (name === undefined) return;
    const now = clock.now();
    const definition = (await topics.resolve(topic.organizationId, topic.topicName))?.definition;
    const days = definition?.batch?.retentionInDays ?? usualRetentionDays;
    // An hour goes when its last message is past its time.
    const firstKept = Math.floor((now - days * dayMilliseconds) / hourMilliseconds) * hourMilliseconds;
    const below = hourFolder(name, topic.topicName, firstKept);
    const expired = await catalog.removeFiles(topic, { below, at: now });
    if (expired > 0) log.info({ event: 'lake.expired', ...topic, files: expired }, 'old files were removed');

    const deletedAt = (await topics.get(topic.organizationId)).deleted.get(topic.topicName);
    if (deletedAt === undefined || deletedAt + deletedTopicMilliseconds > now) return;
    const all = afterAll(topicFolder(name, topic.topicName));
    const removed = await catalog.removeFiles(topic, { below: all, acceptedBy: deletedAt, at: now });
    if (removed > 0) log.info({ event: 'lake.deleted', ...topic, files: removed }, 'a deleted topic is gone');
  }

  /** Deletes the objects of files that were removed long enough ago, and then what is known of them. */
  async deleteRemoved(signal: AbortSignal): Promise<void> {
    const { catalog, objects, clock } = this.#parts;
    const emptied = new Map<string, TopicAddress>();
    for (;;) {
      const before = clock.now() - removedGraceMilliseconds;
      const files = await catalog.removedFiles(before, deletionsAtOnce);
      for (const file of files) {
        if (signal.aborted) return;
        await objects.delete(objectKeyOf(file.key));
        emptied.set(`${file.organizationId}/${file.topicName}`, file);
      }
      await catalog.forgetFiles(files);
      if (files.length < deletionsAtOnce) break;
    }
    for (const topic of emptied.values()) await this.#dropIfDeleted(topic);
  }

  /** A deleted topic that has no file left is as if it had never been. */
  async #dropIfDeleted({ organizationId, topicName }: TopicAddress): Promise<void> {
    const { catalog, topics } = this.#parts;
    if (!(await topics.get(organizationId)).deleted.has(topicName)) return;
    await catalog.dropTable({ organizationId, topicName });
  }

  async #sweepNow(signal: AbortSignal): Promise<void> {
    const now = this.#parts.clock.now();
    if (this.#sweepAfter === undefined && now - this.#sweptAt < orphanSweepMilliseconds) return;
    if (this.#sweepAfter === undefined) this.#sweptAt = now;
    for (let page = 0; page < orphanPagesAtOnce && !signal.aborted; page += 1) {
      this.#sweepAfter = await this.sweepPage(this.#sweepAfter);
      if (this.#sweepAfter === undefined) return;
    }
  }

  /** Deletes the orphans among some objects, and answers where to go on. */
  async sweepPage(after: string | undefined): Promise<string | undefined> {
    const { catalog, objects, clock, log } = this.#parts;
    const page = await objects.list(objectFolder, {
      limit: orphanPageSize,
      ...(after === undefined ? {} : { after }),
    });
    const before = clock.now() - orphanGraceMilliseconds;
    const byOwner = new Map<string, { organizationName: string; topicName: string; keys: string[] }>();
    for (const { key, lastModified } of page.objects) {
      if (lastModified > before) continue;
      const fileKey = key.slice(objectFolder.length);
      const owner = ownerOf(fileKey);
      // Not made by us, so not ours to delete.
      if (owner === undefined) continue;
      const name = topicFolder(owner.organizationName, owner.topicName);
      const some = byOwner.get(name) ?? { ...owner, keys: [] };
      some.keys.push(fileKey);
      byOwner.set(name, some);
    }
    for (const { organizationName, topicName, keys } of byOwner.values()) {
      const known = await catalog.known(organizationName, topicName, keys);
      for (const key of keys.filter((each) => !known.has(each))) {
        await objects.delete(objectKeyOf(key));
        log.info({ event: 'lake.orphan', key }, 'a file that belongs to no table was deleted');
      }
    }
    return page.next;
  }
}
