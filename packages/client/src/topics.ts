import type { NamedType } from '@millrace/contract';
import { pages } from './pages.ts';
import { Publisher, type PublisherOptions } from './publisher.ts';
import {
  type PublishLinesOptions,
  type PublishManyOptions,
  type PublishOptions,
  publishLines,
  publishMany,
  publishMessage,
} from './publishing.ts';
import { type OrganizationOptions, organizationOf, type Scope } from './scope.ts';
import { readEvents } from './server-sent-events.ts';
import { download, type TransferOptions } from './transfers.ts';

type Topic = NamedType<'Topic'>;
type File = NamedType<'TopicFilesResponse'>['files'][number];

/** A message as it was accepted, from a tail. */
export interface TailedMessage {
  readonly messageKey: string;
  readonly messageId: string;
  readonly acceptedAt: string;
  readonly body: unknown;
}

/** Where messages go, and putting them there. */
export class Topics {
  readonly #scope: Scope;

  constructor(scope: Scope) {
    this.#scope = scope;
  }

  /**
   * Publishes one message: an object, a text or bytes. Resolves when it is durable for every destination.
   *
   * @example
   * ```ts
   * const { messageId } = await millrace.topics.publish('clicks', { page: '/pricing' }, { key: 'user-42' });
   * ```
   */
  publish(
    topicName: string,
    message: object | string | Uint8Array<ArrayBuffer>,
    options: PublishOptions,
  ): Promise<NamedType<'Published'>> {
    return publishMessage(this.#scope, topicName, message, options);
  }

  /**
   * Publishes many messages in one request, as NDJSON. Those that are refused are listed by index.
   *
   * @example
   * ```ts
   * const answer = await millrace.topics.publishMany('clicks', [{ user: 'u1', page: '/' }], { keyPath: '/user' });
   * ```
   */
  publishMany(
    topicName: string,
    messages: readonly object[],
    options: PublishManyOptions = {},
  ): Promise<NamedType<'PublishedMany'>> {
    return publishMany(this.#scope, topicName, messages, options);
  }

  /**
   * Publishes lines of JSON as they are.
   *
   * @example
   * ```ts
   * await millrace.topics.publishLines('clicks', '{"user":"u1"}\n{"user":"u2"}', { keyPath: '/user' });
   * ```
   */
  publishLines(
    topicName: string,
    lines: string | Uint8Array<ArrayBuffer>,
    options: PublishLinesOptions = {},
  ): Promise<NamedType<'PublishedMany'>> {
    return publishLines(this.#scope, topicName, lines, options);
  }

  /**
   * Something that publishes in batches in the background, for many messages.
   *
   * @example
   * ```ts
   * const publisher = millrace.topics.publisher('clicks', { keyPath: '/user' });
   * await publisher.publish({ user: 'u1', page: '/' });
   * await publisher.flush();
   * ```
   */
  publisher(topicName: string, options: PublisherOptions & OrganizationOptions = {}): Publisher {
    const { keyPath, idPath, organization, signal } = options;
    return new Publisher(
      (lines) => this.publishLines(topicName, lines, { keyPath, idPath, organization, signal }),
      options,
    );
  }

  /**
   * The messages of a topic as they are accepted, until the loop is left or the signal ends it.
   *
   * @example
   * ```ts
   * for await (const message of millrace.topics.tail('clicks', { signal: AbortSignal.timeout(60_000) })) {
   *   console.log(message.messageKey, message.body);
   * }
   * ```
   */
  async *tail(
    topicName: string,
    options: OrganizationOptions & {
      readonly key?: string | undefined;
      /** Is told how many messages were left out because this end was too slow. */
      readonly onDropped?: (data: string) => void;
    } = {},
  ): AsyncGenerator<TailedMessage, void> {
    const response = await this.#scope.transport.open('tail', {
      path: this.#path(topicName, options),
      query: options.key === undefined ? {} : { messageKey: options.key },
      accept: 'text/event-stream',
      signal: options.signal,
    });
    for await (const { event, data } of readEvents(response)) {
      if (event === 'message') yield JSON.parse(data);
      else options.onDropped?.(data);
    }
  }

  /**
   * The definitions of all topics with their version.
   *
   * @example
   * ```ts
   * const { topics, version } = await millrace.topics.definitions();
   * ```
   */
  definitions(options: OrganizationOptions = {}): Promise<NamedType<'Topics'>> {
    return this.#scope.transport.call('getTopics', {
      path: { organizationName: organizationOf(this.#scope, options) },
      signal: options.signal,
    });
  }

  /**
   * Defines or replaces a topic.
   *
   * @example
   * ```ts
   * await millrace.topics.set('clicks', { batch: { retentionInDays: 30 }, streams: [{ name: 'clicks' }] });
   * ```
   */
  set(
    topicName: string,
    topic: Topic,
    options: OrganizationOptions & { readonly expectedVersion?: number | undefined } = {},
  ): Promise<NamedType<'Topics'>> {
    const { expectedVersion, signal } = options;
    return this.#scope.transport.call('updateTopic', {
      path: this.#path(topicName, options),
      query: expectedVersion === undefined ? {} : { expectedVersion },
      body: topic,
      repeat: expectedVersion === undefined,
      signal,
    });
  }

  /**
   * Says what happens to topics that are not defined.
   *
   * @example
   * ```ts
   * await millrace.topics.setDefault({ allowUndefined: false });
   * ```
   */
  setDefault(
    request: NamedType<'UpdateDefaultTopicRequest'>,
    options: OrganizationOptions & { readonly expectedVersion?: number | undefined } = {},
  ): Promise<NamedType<'Topics'>> {
    const { expectedVersion, signal } = options;
    return this.#scope.transport.call('updateDefaultTopic', {
      path: { organizationName: organizationOf(this.#scope, options) },
      query: expectedVersion === undefined ? {} : { expectedVersion },
      body: request,
      repeat: expectedVersion === undefined,
      signal,
    });
  }

  /**
   * Deletes the definition of a topic.
   *
   * @example
   * ```ts
   * await millrace.topics.delete('clicks');
   * ```
   */
  delete(
    topicName: string,
    options: OrganizationOptions & { readonly expectedVersion?: number | undefined } = {},
  ): Promise<NamedType<'Topics'>> {
    const { expectedVersion, signal } = options;
    return this.#scope.transport.call('deleteTopic', {
      path: this.#path(topicName, options),
      query: expectedVersion === undefined ? {} : { expectedVersion },
      signal,
    });
  }

  /**
   * All files of a topic with batch, page after page.
   *
   * @example
   * ```ts
   * for await (const file of millrace.topics.files('clicks', { prefix: 'year=2026/month=11/' })) console.log(file.key, file.size);
   * ```
   */
  files(
    topicName: string,
    options: OrganizationOptions & { readonly prefix?: string | undefined } = {},
  ): AsyncGenerator<File, void> {
    const { prefix, signal } = options;
    return pages(async (nextToken: string | undefined) => {
      const page = await this.#scope.transport.call('listTopicFiles', {
        path: this.#path(topicName, options),
        query: {
          maxResults: 1000,
          ...(prefix === undefined ? {} : { prefix }),
          ...(nextToken === undefined ? {} : { nextToken }),
        },
        signal,
      });
      return { entries: page.files, next: page.nextToken };
    });
  }

  /**
   * A URL for one file that works without a credential for 15 minutes.
   *
   * @example
   * ```ts
   * for await (const file of millrace.topics.files('clicks')) console.log((await millrace.topics.fileUrl('clicks', file.key)).url);
   * ```
   */
  fileUrl(
    topicName: string,
    key: string,
    options: OrganizationOptions = {},
  ): Promise<NamedType<'FileDownloadUrlResponse'>> {
    return this.#scope.transport.call('getTopicFileDownloadUrl', {
      path: this.#path(topicName, options),
      query: { key },
      signal: options.signal,
    });
  }

  /**
   * Downloads one file as a stream.
   *
   * @example
   * ```ts
   * for await (const file of millrace.topics.files('clicks')) {
   *   const stream = await millrace.topics.download('clicks', file.key, { onProgress: ({ bytes }) => console.log(bytes) });
   *   for await (const chunk of stream) process.stdout.write(chunk);
   * }
   * ```
   */
  async download(
    topicName: string,
    key: string,
    options: OrganizationOptions & TransferOptions = {},
  ): Promise<ReadableStream<Uint8Array<ArrayBuffer>>> {
    const { url } = await this.fileUrl(topicName, key, options);
    return download(this.#scope.transport, url, options);
  }

  /**
   * The schema of a topic.
   *
   * @example
   * ```ts
   * const { schema } = await millrace.topics.schema('clicks');
   * ```
   */
  schema(topicName: string, options: OrganizationOptions = {}): Promise<NamedType<'TopicSchema'>> {
    return this.#scope.transport.call('getTopicSchema', {
      path: this.#path(topicName, options),
      signal: options.signal,
    });
  }

  /**
   * Sets the schema of a topic, as a JSON Schema: it fixes types and order of the columns.
   *
   * @example
   * ```ts
   * await millrace.topics.setSchema('clicks', { type: 'object', properties: { page: { type: 'string' } } });
   * ```
   */
  async setSchema(
    topicName: string,
    schema: object | string,
    options: OrganizationOptions = {},
  ): Promise<void> {
    await this.#scope.transport.call('updateTopicSchema', {
      path: this.#path(topicName, options),
      body: { schema: typeof schema === 'string' ? schema : JSON.stringify(schema), format: 'JSON' },
      signal: options.signal,
    });
  }

  /**
   * Infers the schema from what was ingested.
   *
   * @example
   * ```ts
   * const { schema } = await millrace.topics.recalculateSchema('clicks');
   * ```
   */
  recalculateSchema(topicName: string, options: OrganizationOptions = {}): Promise<NamedType<'TopicSchema'>> {
    return this.#scope.transport.call('recalculateTopicSchema', {
      path: this.#path(topicName, options),
      signal: options.signal,
    });
  }

  #path(topicName: string, options: OrganizationOptions) {
    return { organizationName: organizationOf(this.#scope, options), topicName };
  }
}
