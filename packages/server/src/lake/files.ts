import type { ObjectStore } from '../objects/objects.ts';
import type { Clock } from '../platform/clock.ts';
import type { Catalog, LakeFile } from './catalog.ts';
import { keyRange, objectKeyOf, topicFolder } from './keys.ts';

/** Who asks: keys are made of the name, rows belong to the id. */
export interface OrganizationReference {
  readonly id: string;
  readonly name: string;
}

export interface FilePage {
  readonly files: readonly LakeFile[];
  /** The key after which the next page begins, where there is one. */
  readonly next?: string;
}

export interface FileQuery {
  /** The start of the key, or of the part after the topic's own folder. */
  readonly prefix: string;
  readonly after?: string | undefined;
  readonly limit: number;
}

const downloadMilliseconds = 15 * 60_000;

/** The files of topics, as their owners see them. */
export class LakeFiles {
  readonly #catalog: Catalog;
  readonly #objects: ObjectStore;
  readonly #clock: Clock;

  constructor(parts: { catalog: Catalog; objects: ObjectStore; clock: Clock }) {
    this.#catalog = parts.catalog;
    this.#objects = parts.objects;
    this.#clock = parts.clock;
  }

  async list(organization: OrganizationReference, topicName: string, query: FileQuery): Promise<FilePage> {
    const range = keyRange(organization.name, topicName, query.prefix);
    if (range === undefined) return { files: [] };
    const { after, limit } = query;
    const topic = { organizationId: organization.id, topicName };
    const found = await this.#catalog.page(topic, { ...range, after, limit: limit + 1 });
    const files = found.slice(0, limit);
    const last = files.at(-1);
    return found.length > limit && last !== undefined ? { files, next: last.key } : { files };
  }

  /** A URL for one live file; undefined when the topic has no such file. */
  async downloadUrl(
    organization: OrganizationReference,
    topicName: string,
    key: string,
  ): Promise<{ url: string; expiresAt: number } | undefined> {
    if (!key.startsWith(topicFolder(organization.name, topicName))) return undefined;
    const file = await this.#catalog.file({ organizationId: organization.id, topicName }, key);
    if (file === undefined) return undefined;
    const expiresAt = this.#clock.now() + downloadMilliseconds;
    return { url: await this.#objects.signedGet(objectKeyOf(file.key), { expiresAt }), expiresAt };
  }
}
