import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { ChunkRecord } from './chunk.ts';

/** A partition as the thread that writes knows it. */
export interface Partition {
  readonly topic: number;
  readonly partition: number;
  /** The last offset given, and the last one that is in a chunk: they differ while a batch is placed. */
  last: number;
  stored: number;
  trimmedThrough: number;
  acceptedThrough: number;
  /** Records that have their offset and wait for their chunk. */
  readonly waiting: ChunkRecord[];
}

export interface Topic {
  readonly id: number;
  readonly partitions: (Partition | undefined)[];
}

const rememberedTopics = 20_000;

/** Looks topics and partitions up in the file once and remembers them. */
export class Partitions {
  readonly #topics = new Map<string, Map<string, Topic>>();
  #count = 0;
  readonly #findTopic: StatementSync;
  readonly #insertTopic: StatementSync;
  readonly #findLast: StatementSync;
  readonly #findTrimmed: StatementSync;

  constructor(database: DatabaseSync) {
    this.#findTopic = database.prepare('select id from topics where organization_id = ? and topic_name = ?');
    this.#insertTopic = database.prepare(
      'insert into topics (organization_id, topic_name) values (?, ?) returning id',
    );
    this.#findLast = database.prepare(
      `select last_offset, accepted_through from chunks
        where topic = ? and partition = ? order by last_offset desc limit 1`,
    );
    this.#findTrimmed = database.prepare(
      'select trimmed_through from partitions where topic = ? and partition = ?',
    );
  }

  /** The topic; made when it is new and that is wanted. */
  topic(organizationId: string, topicName: string, make: true): Topic;
  topic(organizationId: string, topicName: string, make: false): Topic | undefined;
  topic(organizationId: string, topicName: string, make: boolean): Topic | undefined {
    const known = this.#topics.get(organizationId)?.get(topicName);
    if (known !== undefined) return known;
    const row =
      this.#findTopic.get(organizationId, topicName) ??
      (make ? this.#insertTopic.get(organizationId, topicName) : undefined);
    if (row === undefined) return undefined;
    const topic: Topic = { id: Number(row.id), partitions: [] };
    const topics = this.#topics.get(organizationId) ?? new Map<string, Topic>();
    this.#topics.set(organizationId, topics.set(topicName, topic));
    this.#count += 1;
    return topic;
  }

  partition(topic: Topic, partition: number): Partition {
    const known = topic.partitions[partition];
    if (known !== undefined) return known;
    const chunk = this.#findLast.get(topic.id, partition);
    const trimmedThrough = Number(this.#findTrimmed.get(topic.id, partition)?.trimmed_through ?? 0);
    const last = Math.max(trimmedThrough, Number(chunk?.last_offset ?? 0));
    const found: Partition = {
      topic: topic.id,
      partition,
      last,
      stored: last,
      trimmedThrough,
      acceptedThrough: Number(chunk?.accepted_through ?? Number.NEGATIVE_INFINITY),
      waiting: [],
    };
    topic.partitions[partition] = found;
    return found;
  }

  /** Keeps memory bounded. Only between transactions: inside one, partitions know more than the file. */
  relax(): void {
    if (this.#count > rememberedTopics) this.forget();
  }

  /** Forgets everything, for when what is known may not be what is in the file. */
  forget(): void {
    this.#topics.clear();
    this.#count = 0;
  }
}
